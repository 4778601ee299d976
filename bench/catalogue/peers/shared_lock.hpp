// A readers-writer lock around a container that threads may not share by itself.
#pragma once

#include <mutex>
#include <shared_mutex>

namespace pmlab::bench::peers {

// Locks nothing when one thread is all there is, so that the container's single-thread figures are its own.
class optional_shared_lock {
 public:
  explicit optional_shared_lock(unsigned threads) : needed_(threads > 1) {}

  [[nodiscard]] std::unique_lock<std::shared_mutex> exclusive() {
    return needed_ ? std::unique_lock(mutex_) : std::unique_lock<std::shared_mutex>();
  }
  [[nodiscard]] std::shared_lock<std::shared_mutex> shared() {
    return needed_ ? std::shared_lock(mutex_) : std::shared_lock<std::shared_mutex>();
  }

 private:
  bool needed_;
  std::shared_mutex mutex_;
};

}  // namespace pmlab::bench::peers
