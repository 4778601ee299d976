// Several version locks at once, without a deadlock.
#pragma once

#include <pmlab/sync/version_lock.hpp>

#include <array>
#include <cstddef>
#include <functional>
#include <initializer_list>

namespace pmlab::sync {

// Holds some version locks, each once, taken in the order of their addresses. If no thread waits for a lock while it
// holds one, except in this order, there is no deadlock.
class several_locks {
 public:
  static constexpr std::size_t most = 4;  // locks of one object of this class

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
  several_locks(const several_locks&) = delete;
  several_locks& operator=(const several_locks&) = delete;
  ~several_locks() {
    for (std::size_t i = 0; i < count_; ++i) held_[i]->unlock();
  }

 private:
  std::array<version_lock*, most> held_{};
  std::size_t count_ = 0;
};

}  // namespace pmlab::sync
