// Threads that an object has of its own.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/platform.hpp>

#include <cstddef>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sched.h>

namespace pmlab::sync {

// Threads that start one after the other and end together. Thread safety: none.
class background_threads {
 public:
  // Starts none yet.
  background_threads() = default;
  background_threads(const background_threads&) = delete;
  background_threads& operator=(const background_threads&) = delete;
  ~background_threads() { join(); }

  // `what`: "a thread of the cache". Throws pmlab::error, whose remedy is `remedy`: the system gives no more threads.
  template <class Work>
  std::thread& start(const char* what, const char* remedy, Work&& work) {
    try {
      return threads_.emplace_back(std::forward<Work>(work));
    } catch (const std::system_error& e) {
      throw error(std::string("cannot start ") + what + ": " + e.what(), remedy);
    }
  }

  // How many have started.
  [[nodiscard]] std::size_t size() const noexcept { return threads_.size(); }

  // Waits until all of them have ended. REQUIRES: they were asked to end.
  void join() {
    for (std::thread& t : threads_) t.join();
    threads_.clear();
  }

 private:
  std::vector<std::thread> threads_;
};

// The same, bound to `cpus` in turn; without any, they run on every CPU. Thread safety: none.
class bound_threads {
 public:
  // Starts none yet.
  explicit bound_threads(std::vector<int> cpus) : cpus_(std::move(cpus)) {}

  // Starts a thread as background_threads does, and binds it.
  template <class Work>
  void start(const char* what, const char* remedy, Work&& work) {
    std::thread& started = threads_.start(what, remedy, std::forward<Work>(work));
    if constexpr (platform::binds_threads)
      if (!cpus_.empty()) bind(started, cpus_[(threads_.size() - 1) % cpus_.size()]);
  }
  // Joins as background_threads does.
  void join() { threads_.join(); }

 private:
  static void bind(std::thread& thread, int cpu) noexcept {
    cpu_set_t mine;
    CPU_ZERO(&mine);
    CPU_SET(static_cast<std::size_t>(cpu), &mine);
    // Refused only if there is no such CPU: the thread then runs wherever the kernel likes.
    pthread_setaffinity_np(thread.native_handle(), sizeof mine, &mine);
  }

  std::vector<int> cpus_;
  background_threads threads_;
};

}  // namespace pmlab::sync
