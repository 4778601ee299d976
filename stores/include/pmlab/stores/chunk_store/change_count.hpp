// A count of changes, for an operation without room that waits for one.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace pmlab::stores::detail::chunk_store {

// Thread safety: all operations from any thread.
class change_count {
 public:
  [[nodiscard]] std::uint64_t now() const {
    const std::scoped_lock lock(mutex_);
    return count_;
  }
  void count_one() {
    {
      const std::scoped_lock lock(mutex_);
      ++count_;
    }
    change_.notify_all();
  }
  // Waits until now() is not `seen`, or a little while.
  void wait_while(std::uint64_t seen) const {
    std::unique_lock lock(mutex_);
    change_.wait_for(lock, std::chrono::milliseconds(1), [&] { return count_ != seen; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable change_;
  std::uint64_t count_ = 0;
};

}  // namespace pmlab::stores::detail::chunk_store
