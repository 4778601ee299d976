// An action in equal intervals, in a thread of its own: the timer that syncs a store's log.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

namespace pmlab::stores {

// Ends with this object; the action does not run after that. It throws nothing.
class sync_timer {
 public:
  sync_timer(std::chrono::duration<double, std::milli> interval, std::function<void()> action)
      : thread_([interval, action = std::move(action)](const std::stop_token& stopped) {
          std::mutex mutex;
          std::condition_variable_any wakes;
          std::unique_lock lock(mutex);
          auto next = std::chrono::steady_clock::now();
          const auto step = std::chrono::duration_cast<std::chrono::steady_clock::duration>(interval);
          while (true) {
            // The interval is from beginning to beginning; one that was missed is not made up for.
            next = std::max(next + step, std::chrono::steady_clock::now());
            wakes.wait_until(lock, stopped, next, [] { return false; });
            if (stopped.stop_requested()) return;
            action();
          }
        }) {}

 private:
  std::jthread thread_;
};

}  // namespace pmlab::stores
