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

// Starts threads one after the other and binds them to `cpus` in turn; without any, they run on every CPU. Thread safety:
// none.
class background_threads {
 public:
  // Starts none yet.
  explicit background_threads(std::vector<int> cpus = {}) : cpus_(std::move(cpus)) {}
  background_threads(const background_threads&) = delete;
  background_threads& operator=(const background_threads&) = delete;
  ~background_threads() { join(); }

  // `what`: "a thread of the cache". Throws pmlab::error, whose remedy is `remedy`: the system gives no more threads.
  template <class Work>
  void start(const char* what, const char* remedy, Work&& work) {
    try {
      threads_.emplace_back(std::forward<Work>(work));
    } catch (const std::system_error& e) {
      throw error(std::string("cannot start ") + what + ": " + e.what(), remedy);
    }
    bind(threads_.back(), threads_.size() - 1);
  }

  // Waits until all of them have ended. REQUIRES: they were asked to end.
  void join() {
    for (std::thread& t : threads_) t.join();
    threads_.clear();
  }

 private:
  void bind(std::thread& thread, std::size_t number) const noexcept {
    if constexpr (platform::binds_threads) {
      if (cpus_.empty()) return;
      cpu_set_t mine;
      CPU_ZERO(&mine);
      CPU_SET(static_cast<std::size_t>(cpus_[number % cpus_.size()]), &mine);
      // Refused only if there is no such CPU: the thread then runs wherever the kernel likes.
      pthread_setaffinity_np(thread.native_handle(), sizeof mine, &mine);
    }
  }

  std::vector<int> cpus_;
  std::vector<std::thread> threads_;
};

}  // namespace pmlab::sync
