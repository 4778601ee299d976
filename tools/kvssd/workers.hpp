// The threads that perform asynchronous requests, and call back.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace pmlab::kvssd {

// Thread safety: any thread. Requests begin in the order in which they were given, and may end in any order.
class workers {
 public:
  // Throws std::system_error: no thread could be made.
  explicit workers(unsigned threads) {
    threads_.reserve(threads);
    try {
      for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
    } catch (...) {
      end();
      throw;
    }
  }
  workers(const workers&) = delete;
  workers& operator=(const workers&) = delete;
  // Performs all requests that were accepted.
  ~workers() { end(); }

  // True: the calling thread performs a request of some device, and is in its callback perhaps.
  [[nodiscard]] static bool is_one() noexcept { return is_worker; }

  // Waits while `most_waiting` requests wait. A callback that gives a request does not wait: its thread makes room.
  // Throws std::bad_alloc: the request was not accepted.
  void give(std::function<void()> request) {
    {
      std::unique_lock lock(mutex_);
      if (!is_worker) room_.wait(lock, [&] { return waiting_.size() < most_waiting; });
      waiting_.push_back(std::move(request));
    }
    some_.notify_one();
  }

 private:
  static constexpr std::size_t most_waiting = 1024;

  void end() noexcept {
    {
      const std::scoped_lock lock(mutex_);
      ends_ = true;
    }
    some_.notify_all();
    for (std::thread& t : threads_) t.join();
  }
  void work() {
    is_worker = true;
    for (;;) {
      std::function<void()> request;
      {
        std::unique_lock lock(mutex_);
        some_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        request = std::move(waiting_.front());
        waiting_.pop_front();
      }
      room_.notify_one();
      request();
    }
  }

  static inline thread_local bool is_worker = false;

  std::mutex mutex_;
  std::condition_variable some_, room_;
  std::deque<std::function<void()>> waiting_;
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace pmlab::kvssd
