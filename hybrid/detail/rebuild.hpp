// How a copy is made anew from the truth: a tree from a hash, and a hash from a tree.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/sync/run_in_parallel.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace pmlab::hybrid::detail {

// ---- a tree from a hash ----

inline bool by_key(const indexes::entry& a, const indexes::entry& b) noexcept { return a.key < b.key; }

// Entries, cut into parts: all keys of a part are below those of the next one.
struct parted_entries {
  std::unique_ptr<indexes::entry[]> entries;
  std::vector<std::size_t> starts;  // of the parts, and the end of the last one
};

// Cuts into parts part_of(key) = 0, 1, ...: counted block by block, so that each block knows where its entries go.
// Nothing if a part is larger than `largest`.
template <class PartOf>
[[nodiscard]] std::optional<parted_entries> cut(std::span<const indexes::entry> all, std::size_t parts,
                                                unsigned threads, std::size_t largest, PartOf&& part_of) {
  constexpr std::size_t block = std::size_t{1} << 16;
  const std::size_t blocks = (all.size() + block - 1) / block;
  std::vector<std::size_t> places(blocks * parts);
  const auto entries_of = [&](std::size_t b) {
    return all.subspan(b * block, std::min(block, all.size() - b * block));
  };
  sync::run_in_parallel(threads, blocks, 1, [&](std::size_t b) {
    for (const indexes::entry& e : entries_of(b)) ++places[b * parts + part_of(e.key)];
  });
  parted_entries result;
  std::size_t next = 0;
  for (std::size_t p = 0; p < parts; ++p) {
    result.starts.push_back(next);
    for (std::size_t b = 0; b < blocks; ++b) next += std::exchange(places[b * parts + p], next);
    if (next - result.starts.back() > largest) return std::nullopt;
  }
  result.starts.push_back(next);
  result.entries.reset(new indexes::entry[all.size()]);
  sync::run_in_parallel(threads, blocks, 1, [&](std::size_t b) {
    for (const indexes::entry& e : entries_of(b)) result.entries[places[b * parts + part_of(e.key)]++] = e;
  });
  return result;
}

// Into parts of about `entries_per_part`. Where keys are spread evenly, their upper bits say the part; elsewhere bounds
// that are chosen from a sample.
[[nodiscard]] inline parted_entries cut_by_key(std::span<const indexes::entry> all, std::size_t entries_per_part,
                                               unsigned threads) {
  const auto [lowest, highest] = std::minmax_element(all.begin(), all.end(), by_key);
  const auto bits = static_cast<unsigned>(std::bit_width(all.size() / entries_per_part));
  const auto width = static_cast<unsigned>(std::bit_width(highest->key - lowest->key));
  const unsigned shift = width > bits ? width - bits : 0;
  constexpr std::size_t tolerated = 4;
  if (auto even = cut(all, std::size_t{1} << bits, threads, tolerated * entries_per_part,
                      [shift, low = lowest->key](indexes::key_type key) { return (key - low) >> shift; }))
    return *std::move(even);

  constexpr std::size_t samples_per_part = 32;
  const std::size_t parts = all.size() / entries_per_part + 1;
  const std::size_t samples = parts * samples_per_part;
  std::vector<indexes::key_type> bounds;
  for (std::size_t i = 0; i < samples; ++i) bounds.push_back(all[all.size() / samples * i].key);
  std::sort(bounds.begin(), bounds.end());
  for (std::size_t i = 1; i < parts; ++i) bounds[i - 1] = bounds[i * samples_per_part];
  bounds.resize(parts - 1);
  return *cut(all, parts, threads, all.size(), [&bounds](indexes::key_type key) {
    return static_cast<std::size_t>(std::upper_bound(bounds.begin(), bounds.end(), key) - bounds.begin());
  });
}

// Calls put(entry) for every entry of `hash`, which nobody changes meanwhile, in ascending order within each of many
// ranges of keys, from up to `threads` threads. Takes 32 bytes of DRAM per entry while it works. Returns how many there
// were; stops early when `stop` says so. May throw std::bad_alloc, before the first call.
template <class Hash, class Put>
std::uint64_t for_each_sorted(const Hash& hash, unsigned threads, const std::atomic<bool>& stop, Put&& put) {
  constexpr std::size_t entries_per_part = std::size_t{1} << 15;
  std::vector<indexes::entry> all;
  hash.for_each([&](indexes::key_type key, indexes::value_type value) { all.push_back({key, value}); });
  const auto put_sorted = [&](std::span<indexes::entry> part) {
    std::sort(part.begin(), part.end(), by_key);
    for (const indexes::entry& e : part) {
      if (stop.load(std::memory_order_relaxed)) return;
      put(e);
    }
  };
  const std::uint64_t count = all.size();
  if (count < 2 * entries_per_part) {
    put_sorted(all);
    return count;
  }
  const parted_entries parted = cut_by_key(all, entries_per_part, threads);
  std::vector<indexes::entry>().swap(all);
  sync::run_in_parallel(threads, parted.starts.size() - 1, 1, [&](std::size_t p) {
    put_sorted(std::span(parted.entries.get() + parted.starts[p], parted.starts[p + 1] - parted.starts[p]));
  });
  return count;
}

// ---- a hash from a tree that is at work ----

// When keys of a stripe were last erased, so that whoever has read the truth before does not put an erased key, or an old
// value, into the copy.
//
//   E1  An eraser takes its stamp after the truth has changed and before it lets go of the stripe; so does, before its
//       change counts as applied, who had to take a key out of the copy alone.
//   E2  Whoever rebuilds looks at the clock before it reads the truth. If, with the stripe held, nothing is queued for it
//       and its stamp is not later than that, no key of it was erased since: what was read is there, or something newer
//       is in the copy.
class erasures {
 public:
  // `stripes`: 0 if nobody will ask.
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

// Calls work(entries, time) for chunks of `chunk_entries` entries that together are all of `tree`, whatever writers do,
// from up to `threads` threads; `time`: `clock()` before the chunk was read. Returns how many entries there were.
template <class Tree, class Clock, class Work>
std::uint64_t for_each_chunk(Tree& tree, unsigned threads, std::size_t chunk_entries, const std::atomic<bool>& stop,
                             Clock&& clock, Work&& work) {
  std::mutex next_chunk;
  indexes::key_type from = 0;
  bool at_end = false;
  std::atomic<std::uint64_t> sum{0};
  const auto loop = [&](std::size_t /*thread*/) {
    std::vector<indexes::entry> chunk(chunk_entries);
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
  sync::run_in_parallel(threads, threads, 1, loop);
  return sum.load();
}

}  // namespace pmlab::hybrid::detail
