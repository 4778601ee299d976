// The fills' way from a reader into the sets: queues, and the threads that empty them.
#pragma once

#include <pmlab/cache/detail/fill.hpp>
#include <pmlab/cache/detail/set_store.hpp>
#include <pmlab/cache/options.hpp>
#include <pmlab/sync/background_threads.hpp>
#include <pmlab/sync/relax.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

namespace pmlab::cache::detail {

struct fill_counts {
  std::uint64_t installed = 0;
  std::uint64_t evictions = 0;
  std::uint64_t stale = 0;
  std::uint64_t dropped_at_close = 0;
};

// Fillers and their queues; without threads, the queues of one, which `run` empties. A filler has several queues, so
// that callers do not contend for the tail of one at every miss.
//
// Thread safety: `offer` from any number of threads; `run` and `settle` too, `close` once. Progress: `offer` is
// lock-free, unless it must wake a filler.
//
// Order:
//   W1  A filler announces that it rests (locked instruction) before it checks its queue for the last time. A reader
//       that wakes fillers stores its fill before it checks (locked instruction) whether one rests. So one of the two
//       sees the other.
template <class Store>
class fillers {
  struct way_in;

 public:
  // Where the fills of one calling thread go.
  struct entrance {
    way_in* in;
    fill_queue* queue;
  };

  // `begin`: called by each thread before all else.
  fillers(Store& store, const options& o, const std::function<void()>& begin)
      : store_(store), rest_(o.rest), threads_(o.cpus) {
    const bool none = o.fill_by == filling::caller;
    const std::size_t of_threads = none ? 0 : o.fillers;
    const std::size_t count = std::max<std::size_t>(of_threads, 1);
    for (std::size_t i = 0; i < count; ++i) ways_in_.push_back(std::make_unique<way_in>(none ? 0 : o.queue));
    try {
      for (std::size_t i = 0; i < of_threads; ++i)
        threads_.start("a thread of the cache", "ask for fewer fillers and helpers",
                       [this, begin, &mine = *ways_in_[i]] {
                         begin_if_memory(begin);
                         serve(mine);
                       });
    } catch (...) {
      close();
      throw;
    }
  }
  fillers(const fillers&) = delete;
  fillers& operator=(const fillers&) = delete;
  ~fillers() { close(); }

  // `caller`: the number of the calling thread.
  [[nodiscard]] entrance entrance_of(std::size_t caller) const noexcept {
    way_in& in = *ways_in_[caller % ways_in_.size()];
    return {&in, in.queues[caller / ways_in_.size() % in.queues.size()].get()};
  }

  [[nodiscard]] bool is_closed() const noexcept { return closing_.load(std::memory_order_relaxed); }

  // False: dropped.
  bool offer(const entrance& to, const fill& f) noexcept {
    if (is_closed() || !to.queue->push(f)) return false;
    if (rest_.count() == 0 && to.in->rests.exchange(false, std::memory_order_seq_cst)) wake(*to.in);  // W1
    return true;
  }

  // Installs up to `most` of the fills that wait. Returns how many it took.
  std::uint64_t run(std::uint64_t most) {
    std::uint64_t taken = 0;
    for (const auto& in : ways_in_) taken += drain(*in, most - taken);
    return taken;
  }

  // Waits until every fill that was offered before this call has been taken and installed.
  void settle() {
    for (const auto& in : ways_in_) {
      for (const auto& queue : in->queues) {
        const std::uint64_t pushed = queue->reserved();
        for (sync::backoff wait; queue->taken() < pushed; wait.pause())
          if (drain(*in, pushed) == 0 && closing_.load(std::memory_order_relaxed)) return;
      }
      const std::scoped_lock lock(in->draining);
    }
  }

  // Ends the threads. Queued fills are dropped.
  void close() {
    if (closing_.exchange(true, std::memory_order_seq_cst)) return;
    for (const auto& in : ways_in_) wake(*in);
    threads_.join();
    for (const auto& in : ways_in_) {
      const std::scoped_lock lock(in->draining);
      for (const auto& queue : in->queues)
        while (queue->pop()) ++in->counts.dropped_at_close;
    }
  }

  [[nodiscard]] fill_counts counts() const {
    fill_counts sum;
    for (const auto& in : ways_in_) {
      const std::scoped_lock lock(in->draining);
      sum.installed += in->counts.installed;
      sum.evictions += in->counts.evictions;
      sum.stale += in->counts.stale;
      sum.dropped_at_close += in->counts.dropped_at_close;
    }
    return sum;
  }

  [[nodiscard]] std::uint64_t bytes() const noexcept {
    std::uint64_t sum = 0;
    for (const auto& in : ways_in_) {
      sum += sizeof(way_in);
      for (const auto& queue : in->queues) sum += sizeof(fill_queue) + queue->bytes();
    }
    return sum;
  }

 private:
  static constexpr std::size_t most_queues = 8;
  static constexpr std::size_t fewest_places = 64;

  struct alignas(64) way_in {
    explicit way_in(std::size_t places) {
      const std::size_t count = places < fewest_places * most_queues ? 1 : most_queues;
      for (std::size_t i = 0; i < count; ++i)
        queues.push_back(std::make_unique<fill_queue>(std::max<std::size_t>(places / count, 2)));
    }
    [[nodiscard]] bool is_empty() const noexcept {
      return std::all_of(queues.begin(), queues.end(), [](const auto& queue) { return queue->is_empty(); });
    }
    std::vector<std::unique_ptr<fill_queue>> queues;
    std::atomic<bool> rests{false};
    mutable std::mutex draining;  // one thread at a time removes fills; guards `counts`
    fill_counts counts;
    std::mutex resting;
    std::condition_variable woken;
  };

  std::uint64_t drain(way_in& in, std::uint64_t most) {
    const std::scoped_lock lock(in.draining);
    std::uint64_t taken = 0;
    for (const auto& queue : in.queues)
      for (; taken < most; ++taken) {
        const std::optional<fill> next = queue->pop();
        if (!next) break;
        install(in, *next);
      }
    return taken;
  }

  void install(way_in& in, const fill& f) {
    switch (store_.fill(f.key, f.value, f.gate)) {
      case fill_result::evicted_another: ++in.counts.evictions; [[fallthrough]];
      case fill_result::installed: ++in.counts.installed; break;
      case fill_result::stale: ++in.counts.stale; break;
      case fill_result::was_there: break;
    }
  }

  void serve(way_in& in) {
    constexpr std::uint64_t at_a_time = 1024;
    while (!closing_.load(std::memory_order_acquire)) {
      if (drain(in, at_a_time) != 0) continue;
      std::unique_lock lock(in.resting);
      in.rests.exchange(true, std::memory_order_seq_cst);  // W1
      const auto has_work = [&] {
        return closing_.load(std::memory_order_seq_cst) || !in.rests.load(std::memory_order_seq_cst);
      };
      if (in.is_empty() && !has_work()) {
        if (rest_.count() == 0)
          in.woken.wait(lock, has_work);
        else
          in.woken.wait_for(lock, rest_);
      }
      in.rests.store(false, std::memory_order_seq_cst);
    }
  }

  // A medium that has no memory to note the beginning charges the filler nothing.
  static void begin_if_memory(const std::function<void()>& begin) {
    try {
      begin();
    } catch (const std::bad_alloc&) {
    }
  }

  // Locking `resting` orders this notify after the waiter's predicate check, so no wakeup is lost.
  static void wake(way_in& in) noexcept {
    { const std::scoped_lock lock(in.resting); }
    in.woken.notify_all();
  }

  Store& store_;
  std::chrono::microseconds rest_;
  std::atomic<bool> closing_{false};
  std::vector<std::unique_ptr<way_in>> ways_in_;
  sync::bound_threads threads_;
};

}  // namespace pmlab::cache::detail
