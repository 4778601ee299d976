// Threads of a store: each repeats its work, pauses, and is woken when there is more.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::tiered {

// Thread safety: all but start and stop, from any thread.
class background {
 public:
  // Does its work, and returns how long to pause.
  using work = std::function<std::chrono::nanoseconds()>;

  background() = default;
  background(const background&) = delete;
  background& operator=(const background&) = delete;
  ~background() { stop(); }

  // `after_failure`: the pause after an exception of the work.
  void start(work todo, std::chrono::nanoseconds after_failure) {
    threads_.emplace_back([this, todo = std::move(todo), after_failure] { run(todo, after_failure); });
  }
  void stop() {
    {
      const std::scoped_lock lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread& t : threads_) t.join();
    threads_.clear();
  }
  void wake() {
    if (threads_.empty()) return;
    {
      const std::scoped_lock lock(mutex_);
      ++wakes_;
    }
    wake_.notify_all();
  }
  // Does work that is due, but that the caller's own does not depend on. A failure of it is the last failure then.
  template <class Work>
  void try_to(Work&& todo) noexcept {
    try {
      todo();
    } catch (const std::exception& e) {
      failed(e.what());
    }
  }
  // The last failure; empty: none yet.
  [[nodiscard]] std::string failure() const {
    const std::scoped_lock lock(failure_mutex_);
    return failure_;
  }

 private:
  void run(const work& todo, std::chrono::nanoseconds after_failure) {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      const std::uint64_t seen = wakes_;
      lock.unlock();
      std::chrono::nanoseconds pause = after_failure;
      try_to([&] { pause = todo(); });
      lock.lock();
      wake_.wait_for(lock, pause, [&] { return stopping_ || wakes_ != seen; });
    }
  }

  void failed(const char* why) noexcept {
    const std::scoped_lock lock(failure_mutex_);
    try {
      failure_ = why;
    } catch (const std::bad_alloc&) {
      failure_.clear();  // a short text needs no memory
      failure_ += "no memory";
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::uint64_t wakes_ = 0;
  bool stopping_ = false;
  mutable std::mutex failure_mutex_;
  std::string failure_;
  std::vector<std::thread> threads_;
};

}  // namespace pmlab::stores::detail::tiered
