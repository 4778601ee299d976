// Rebuilds a hash from a tree that is in use.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/sync/run_in_parallel.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <vector>

namespace pmlab::hybrid::detail {

// When keys of a stripe were last erased, so that a thread that read the primary before does not put an erased key, or
// an old value, into the replica.
//
//   E1  An eraser takes its stamp after the primary has changed and before it releases the stripe; so does, before its
//       change counts as applied, a thread that had to remove a key from the replica alone.
//   E2  A rebuilding thread reads the clock before it reads the primary. If, with the stripe held, nothing is queued
//       for it and its stamp is not later than that, no key of it was erased since: the entry is still present, or
//       something newer is in the replica.
class erasures {
 public:
  // `stripes`: 0 if the stamps are never read.
  explicit erasures(std::size_t stripes)
      : last_(stripes == 0 ? nullptr : new std::atomic<std::uint64_t>[stripes]()), stripes_(stripes) {}

  [[nodiscard]] std::uint64_t now() const noexcept { return clock_.load(std::memory_order_acquire); }
  void note(std::size_t stripe) noexcept {
    const std::uint64_t time = clock_.fetch_add(1, std::memory_order_acq_rel) + 1;
    std::uint64_t last = last_[stripe].load(std::memory_order_relaxed);
    while (last < time && !last_[stripe].compare_exchange_weak(last, time, std::memory_order_release)) {
    }
  }
  [[nodiscard]] bool any_since(std::uint64_t time, std::size_t stripe) const noexcept {
    return last_[stripe].load(std::memory_order_acquire) > time;
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return stripes_ * sizeof(std::uint64_t); }

 private:
  std::atomic<std::uint64_t> clock_{0};
  std::unique_ptr<std::atomic<std::uint64_t>[]> last_;
  std::size_t stripes_;
};

// Calls loop(thread) for `threads` threads, from as many. Throws std::bad_alloc, when all have ended, if one of them
// did.
template <class Loop>
void run_while_memory(unsigned threads, Loop&& loop) {
  std::atomic<bool> failed{false};
  sync::run_in_parallel(threads, threads, 1, [&](std::size_t thread) {
    try {
      loop(thread);
    } catch (const std::bad_alloc&) {
      failed.store(true, std::memory_order_relaxed);
    }
  });
  if (failed.load(std::memory_order_relaxed)) throw std::bad_alloc();
}

// Calls work(entries, time) for chunks of `chunk_entries` entries that together are all of `tree`, also while writers
// change it, from up to `threads` threads; `time`: `clock()` before the chunk was read. Returns the number of entries.
// Throws std::bad_alloc, when all threads have ended, if reading or `work` did: then some entries were not processed.
template <class Tree, class Clock, class Work>
std::uint64_t for_each_chunk(Tree& tree, unsigned threads, std::size_t chunk_entries, const std::atomic<bool>& stop,
                             Clock&& clock, Work&& work) {
  std::mutex next_chunk;
  indexes::key_type from = 0;
  bool at_end = false;
  std::atomic<std::uint64_t> sum{0};
  std::vector<indexes::entry> chunks(threads * chunk_entries);
  const auto loop = [&](std::size_t thread) {
    const auto chunk = std::span(chunks).subspan(thread * chunk_entries, chunk_entries);
    while (!stop.load(std::memory_order_relaxed)) {
      std::size_t count = 0;
      std::uint64_t time = 0;
      {
        // Reading along the leaves is the small part of it, and in order it is fast.
        const std::scoped_lock lock(next_chunk);
        if (at_end) return;
        time = clock();
        count = tree.scan(from, chunk);
        at_end = count < chunk.size() || chunk.back().key == std::numeric_limits<indexes::key_type>::max();
        if (!at_end) from = chunk.back().key + 1;
      }
      work(std::span<const indexes::entry>(chunk).first(count), time);
      sum.fetch_add(count, std::memory_order_relaxed);
    }
  };
  run_while_memory(threads, loop);
  return sum.load();
}

}  // namespace pmlab::hybrid::detail
