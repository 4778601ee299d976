// Which changes readers see: the present moment, and the moments that snapshots hold.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>

namespace pmlab::stores::detail::tiered {

// A moment is the sequence of its newest change. Thread safety: all of it, from any thread.
class moments {
 public:
  // The present one.
  [[nodiscard]] std::uint64_t now() const noexcept { return now_.load(std::memory_order_acquire); }
  // Changes up to `sequence` are seen from now on. One thread at a time.
  void publish(std::uint64_t sequence) noexcept { now_.store(sequence, std::memory_order_release); }

  // The present moment, held until it is released.
  [[nodiscard]] std::uint64_t hold() {
    const std::scoped_lock lock(mutex_);
    return *held_.insert(now());
  }
  void release(std::uint64_t held) {
    const std::scoped_lock lock(mutex_);
    held_.erase(held_.find(held));
  }
  // How many are held.
  [[nodiscard]] std::size_t held() const {
    const std::scoped_lock lock(mutex_);
    return held_.size();
  }
  // No present or later snapshot is older.
  [[nodiscard]] std::uint64_t horizon() const {
    const std::scoped_lock lock(mutex_);
    return held_.empty() ? now() : *held_.begin();
  }

 private:
  std::atomic<std::uint64_t> now_{0};
  mutable std::mutex mutex_;
  std::multiset<std::uint64_t> held_;
};

}  // namespace pmlab::stores::detail::tiered
