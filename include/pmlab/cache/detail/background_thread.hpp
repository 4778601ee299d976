// Threads that a cache has of its own.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/platform.hpp>

#include <cstddef>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sched.h>

namespace pmlab::cache::detail {

// Starts threads one after the other and binds them to `cpus` in turn.
class background_threads {
 public:
  explicit background_threads(std::vector<int> cpus) : cpus_(std::move(cpus)) {}
  background_threads(const background_threads&) = delete;
  background_threads& operator=(const background_threads&) = delete;
  ~background_threads() { join(); }

  // Throws pmlab::error: the system gives no more threads.
  template <class Work>
  void start(Work&& work) {
    try {
      threads_.emplace_back(std::forward<Work>(work));
    } catch (const std::system_error& e) {
      throw error(std::string("cannot start a thread of the cache: ") + e.what(), "ask for fewer fillers and helpers");
    }
    bind(threads_.back(), threads_.size() - 1);
  }

  // Waits for the end of all of them; whoever calls has told them.
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

}  // namespace pmlab::cache::detail
