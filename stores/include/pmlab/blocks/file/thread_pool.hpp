// Threads that make the system calls of blocks::file where io_uring is forbidden or not wanted.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <condition_variable>
#include <csignal>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace pmlab::blocks::detail {

// Thread safety: run() from any thread.
class thread_pool {
 public:
  explicit thread_pool(unsigned threads) {
    // Signals of the program are none of these threads' business.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      stop();
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;
  ~thread_pool() { stop(); }

  // One of the threads calls it soon. It must not throw.
  void run(std::function<void()> task) {
    {
      const std::scoped_lock lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    there_.notify_one();
  }

 private:
  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      there_.wait(lock, [this] { return stopped_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

  void stop() {
    {
      const std::scoped_lock lock(mutex_);
      stopped_ = true;
    }
    there_.notify_all();
    for (std::thread& t : threads_) t.join();
  }

  std::mutex mutex_;
  std::condition_variable there_;
  std::deque<std::function<void()>> tasks_;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

// The results for one queue.
class finished_slots {
 public:
  struct one {
    std::size_t slot;
    std::errc error;
  };

  void add(one result) {
    // Under the lock: the queue may be gone as soon as it has seen the last result.
    const std::scoped_lock lock(mutex_);
    results_.push_back(result);
    there_.notify_one();
  }
  // Moves all results into `to`, which is empty. If `waits`, there is at least one.
  void take(std::vector<one>& to, bool waits) {
    std::unique_lock lock(mutex_);
    if (waits) there_.wait(lock, [this] { return !results_.empty(); });
    to.swap(results_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable there_;
  std::vector<one> results_;
};

}  // namespace pmlab::blocks::detail
