// Ends a test that hangs, with the command that replays it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace pmlab::tests {

// While it lives, the process has `limit` left; then it prints `message` to stderr and aborts.
class watchdog {
 public:
  watchdog(std::chrono::seconds limit, std::string message)
      : message_(std::move(message)), thread_([this, limit] { watch(limit); }) {}
  watchdog(const watchdog&) = delete;
  watchdog& operator=(const watchdog&) = delete;
  ~watchdog() {
    {
      const std::scoped_lock hold(mutex_);
      over_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

 private:
  void watch(std::chrono::seconds limit) {
    std::unique_lock hold(mutex_);
    if (wake_.wait_for(hold, limit, [this] { return over_; })) return;
    std::fprintf(stderr, "hangs: %s\n", message_.c_str());
    std::abort();
  }

  std::string message_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace pmlab::tests
