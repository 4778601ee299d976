// Several version locks at once, without a deadlock.
#pragma once

#include <pmlab/sync/version_lock.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <utility>

namespace pmlab::sync {

// Holds some version locks, each once, taken in the order of their addresses. If no thread waits for a lock while it
// holds one, except in this order, there is no deadlock.
class several_locks {
 public:
  static constexpr std::size_t most = 4;  // locks of one object of this class

  // None.
  several_locks() noexcept = default;
  // Waits for each of them. `locks`: at most `most`; nullptr: none.
  several_locks(std::initializer_list<version_lock*> locks) noexcept {
    for (version_lock* const lock : locks) {
      std::size_t at = count_;
      while (at > 0 && std::less<>()(lock, held_[at - 1])) --at;
      if (lock == nullptr || (at > 0 && held_[at - 1] == lock)) continue;
      for (std::size_t i = count_++; i > at; --i) held_[i] = held_[i - 1];
      held_[at] = lock;
    }
    for (std::size_t i = 0; i < count_; ++i) held_[i]->lock();
  }
  // The other one holds none then.
  several_locks(several_locks&& other) noexcept : held_(other.held_), count_(std::exchange(other.count_, 0)) {}
  // Releases the locks that it held.
  several_locks& operator=(several_locks&& other) noexcept {
    std::swap(held_, other.held_);
    std::swap(count_, other.count_);
    other.unlock();
    return *this;
  }
  ~several_locks() { unlock(); }

  // Releases all of them.
  void unlock() noexcept {
    for (std::size_t i = 0; i < count_; ++i) held_[i]->unlock();
    count_ = 0;
  }

 private:
  std::array<version_lock*, most> held_{};
  std::size_t count_ = 0;
};

}  // namespace pmlab::sync
