// The path of a change from its writer to the replica: queues, and the threads that empty them in batches.
//
// All changes of a stripe go through one queue, and places are taken while the stripe is held. So changes of one key
// are applied in the order in which the primary made them; of those in one batch, the last one alone.
//
// No thread waits idly for an updater: a writer whose queue is full, and a scan that needs all changes, apply batches
// themselves. A thread that finds no memory for that gets std::bad_alloc: no thread waits for memory. No change is
// dropped while the index is open.
#pragma once

#include <pmlab/hybrid/detail/change.hpp>
#include <pmlab/hybrid/detail/memory.hpp>
#include <pmlab/hybrid/options.hpp>
#include <pmlab/sync/background_threads.hpp>
#include <pmlab/sync/relax.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace pmlab::hybrid::detail {

class updaters {
  struct lane;

 public:
  // `apply(change, last)`: makes the change, which is a put or a remove, in the replica if `last` is true, and counts
  // it as applied; if it throws std::bad_alloc, it has changed nothing, and is called again. `foresee(key)`: a change
  // of it will be applied soon. `begin()`: called by a background thread before it works. Throws pmlab::error: no more
  // threads.
  updaters(const options& o, std::function<void(const change&, bool last)> apply,
           std::function<void(indexes::key_type)> foresee, std::function<void()> begin)
      : apply_(std::move(apply)), foresee_(std::move(foresee)), begin_(std::move(begin)), rest_(o.rest) {
    for (unsigned i = 0; i < std::max(o.queues, 1U); ++i) lanes_.push_back(std::make_unique<lane>(o));
    try {
      const unsigned threads = o.how == update::synchronous ? 0 : o.updaters;
      for (unsigned i = 0; i < threads; ++i)
        threads_.start("an updater of the hybrid index", "ask for fewer updaters",
                       [this, i, threads] { serve(i, threads); });
    } catch (...) {
      close();
      throw;
    }
  }
  updaters(const updaters&) = delete;
  updaters& operator=(const updaters&) = delete;
  ~updaters() { close(); }

  // A place in the queue of a stripe, taken when it is made. Filled with "nothing" unless something else is published.
  class ticket {
   public:
    // Throws std::bad_alloc: the queue is full, and there is no memory to apply what is in it. No place is taken then.
    ticket(updaters& owner, std::size_t stripe) : ticket(owner, stripe, std::nothrow) {
      if (!is_there()) throw std::bad_alloc();
    }
    // In place of the exception: `is_there` is false.
    ticket(updaters& owner, std::size_t stripe, std::nothrow_t /*only_if_there_is_room*/)
        : lane_(*owner.lanes_[stripe % owner.lanes_.size()]) {
      place_ = lane_.queue.reserve();
      if (!lane_.queue.has_room(place_)) is_open_ = owner.wait_for_room(lane_, place_);
    }
    ticket(const ticket&) = delete;
    ticket& operator=(const ticket&) = delete;
    ~ticket() {
      if (is_open_) lane_.queue.publish(place_, {});
    }
    // Until something is published.
    [[nodiscard]] bool is_there() const noexcept { return is_open_; }
    // REQUIRES: it is there.
    void publish(const change& c) noexcept {
      lane_.queue.publish(place_, c);
      is_open_ = false;
    }

   private:
    lane& lane_;
    std::uint64_t place_;
    bool is_open_ = true;
  };

  // Waits until, of the places taken before this call, at most `may_wait` of each queue are not yet applied. Returns
  // false if there was nothing to wait for. Throws std::bad_alloc: there is no memory to apply them.
  bool settle(std::uint64_t may_wait = 0) {
    bool waited = false;
    for (const auto& l : lanes_) {
      std::uint64_t reserved = l->queue.reserved();
      if (reserved <= may_wait) continue;
      for (sync::backoff wait; l->applied.load(std::memory_order_acquire) + may_wait < reserved;) {
        waited = true;
        const progress made = help(*l);
        reserved = std::min(reserved, made.reserved);
        if (made.changes == 0) wait.pause();
      }
    }
    return waited;
  }

  // Ends the threads. Queued changes stay queued.
  void close() noexcept {
    closing_.store(true, std::memory_order_release);
    threads_.join();
  }

  void add_to(statistics& s) const {
    for (const auto& l : lanes_) {
      const std::scoped_lock lock(l->draining);
      s.queued += l->counts.queued;
      s.batches += l->counts.batches;
      s.merged += l->counts.merged;
      s.deepest = std::max(s.deepest, l->counts.deepest);
      s.longest_lag_ns = std::max(s.longest_lag_ns, l->counts.longest_lag_ns);
      s.writer_waits += l->writer_waits.load(std::memory_order_relaxed);
      s.waiting += l->queue.reserved() - l->applied.load(std::memory_order_relaxed);
    }
  }

  // Changes that may be on their way at a time.
  [[nodiscard]] std::size_t places() const noexcept { return lanes_.size() * lanes_.front()->queue.places(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& l : lanes_) sum += sizeof(lane) + l->queue.bytes() + l->batch.size() * sizeof(change);
    return sum;
  }

 private:
  using clock = std::chrono::steady_clock;

  struct alignas(64) lane {
    explicit lane(const options& o) : queue(o.queue), batch(std::max<std::size_t>(o.batch, 1)) {}
    change_queue queue;
    std::atomic<std::uint64_t> applied{0};  // places whose changes are in the replica
    std::atomic<std::uint64_t> writer_waits{0};
    mutable std::mutex draining;  // guards the members below
    std::vector<change> batch;
    std::size_t taken = 0;  // places of the batch that is under way; 0: none is
    std::vector<change>::iterator next;
    std::vector<change>::iterator end;
    statistics counts;
    std::uint64_t awaited = 0;  // the place whose wait is being timed; 0: none
    clock::time_point since;
  };

  // What a thread has done for a queue.
  struct progress {
    std::size_t changes = 0;                                             // applied
    std::uint64_t reserved = std::numeric_limits<std::uint64_t>::max();  // if none waits: places ever taken
  };

  // True: there is room for `place`. False: there is no memory to make some, and the place is returned. If a later
  // place was taken meanwhile, that is returned first, unless its thread has memory, and makes room for both.
  [[nodiscard, gnu::noinline]] bool wait_for_room(lane& l, std::uint64_t place) {
    l.writer_waits.fetch_add(1, std::memory_order_relaxed);
    for (sync::backoff wait; !l.queue.has_room(place);) {
      bool is_idle = true;
      try {
        is_idle = help(l).changes == 0;
      } catch (const std::bad_alloc&) {
        // A batch that was taken has made room, also if it is not applied.
        if (!l.queue.has_room(place) && l.queue.give_back(place)) return false;
      }
      if (is_idle) wait.pause();
    }
    return true;
  }

  // Throws std::bad_alloc: the batch stays under way, and this thread, or another one, continues it later.
  progress help(lane& l) {
    const std::unique_lock lock(l.draining, std::try_to_lock);
    return lock.owns_lock() ? drain(l) : progress{};
  }

  // Takes a batch and sorts it, with `draining` held.
  progress take_batch(lane& l) {
    const std::size_t count = l.queue.take(l.batch);
    const std::uint64_t before = l.applied.load(std::memory_order_relaxed);
    const std::uint64_t reserved = l.queue.reserved();
    if (count == 0) return {0, reserved};
    if (l.awaited == 0) {
      l.awaited = reserved;
      l.since = clock::now();
    }
    const auto first = l.batch.begin();
    const auto end = std::remove_if(first, first + static_cast<std::ptrdiff_t>(count),
                                    [](const change& c) { return c.what == change::kind::nothing; });
    std::for_each(first, end, [this](const change& c) { foresee_(c.key); });
    // In the order of keys, which suits the tree; of equal keys the latest one is last.
    std::stable_sort(first, end, [](const change& a, const change& b) { return a.key < b.key; });
    l.next = first;
    l.end = end;
    l.counts.queued += static_cast<std::uint64_t>(end - first);
    l.counts.deepest = std::max(l.counts.deepest, reserved - before);
    l.taken = count;
    return {count};
  }

  // Applies one batch, or the rest of one whose last change threw, with `draining` held.
  progress drain(lane& l) {
    if (l.taken == 0)
      if (const progress taken = take_batch(l); taken.changes == 0) return taken;
    for (; l.next != l.end; ++l.next) {
      const auto c = l.next;
      const auto end = l.end;
      const bool last = c + 1 == end || (c + 1)->key != c->key;
      apply_(*c, last);
      l.counts.merged += last ? 0 : 1;
    }
    const std::size_t count = std::exchange(l.taken, 0);
    const std::uint64_t before = l.applied.load(std::memory_order_relaxed);
    l.applied.store(before + count, std::memory_order_release);
    ++l.counts.batches;
    if (before + count >= l.awaited) {
      const auto waited = std::chrono::duration_cast<std::chrono::nanoseconds>(clock::now() - l.since).count();
      l.counts.longest_lag_ns = std::max(l.counts.longest_lag_ns, static_cast<std::uint64_t>(waited));
      l.awaited = 0;
    }
    return {count};
  }

  // Every `step`th queue from the `first` on. A queue that another thread is emptying is skipped.
  void serve(std::size_t first, std::size_t step) {
    constexpr unsigned looks_before_rest = 64;
    for (unsigned idle = 0; !closing_.load(std::memory_order_acquire);) {
      std::size_t done = 0;
      // Without memory for `begin`, or for a change, it is tried again.
      if (has_memory_for(begin_))
        for (std::size_t i = first; i < lanes_.size(); i += step)
          has_memory_for([&] { done += help(*lanes_[i]).changes; });
      if (done != 0) {
        idle = 0;
      } else if (++idle < looks_before_rest) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(rest_);
      }
    }
  }

  std::function<void(const change&, bool)> apply_;
  std::function<void(indexes::key_type)> foresee_;
  std::function<void()> begin_;
  std::chrono::microseconds rest_;
  std::atomic<bool> closing_{false};
  std::vector<std::unique_ptr<lane>> lanes_;
  sync::background_threads threads_;
};

}  // namespace pmlab::hybrid::detail
