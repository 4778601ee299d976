// The queues of a store, for a thread that waits for what another queue has: its owner may not reap it, or be this
// thread.
#pragma once

#include <pmlab/sync/relax.hpp>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// One thread at a time. Not a mutex: a thread that has it may try to take it again, and does not get it.
class one_at_a_time {
 public:
  [[nodiscard]] bool try_lock() noexcept { return !is_taken_.exchange(true, std::memory_order_acquire); }
  void lock() noexcept {
    for (sync::backoff wait; !try_lock();) wait.pause();
  }
  void unlock() noexcept { is_taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> is_taken_{false};
};

// A queue that another thread can move on.
class helped_queue {
 public:
  // Takes completions of its drive, and goes on with what they make possible, without waiting for them. False: another
  // thread has the queue, or there was nothing to do.
  virtual bool go_on_for_another() noexcept = 0;

 protected:
  helped_queue() = default;
  helped_queue(const helped_queue&) = delete;
  helped_queue& operator=(const helped_queue&) = delete;
  ~helped_queue() = default;
};

// Thread safety: all operations from any thread.
class open_queues {
 public:
  // Throws std::bad_alloc.
  void enter(helped_queue& q) {
    const std::scoped_lock guard(lock_);
    all_.push_back(&q);
  }
  // Waits for a thread that helps one.
  void leave(helped_queue& q) noexcept {
    const std::scoped_lock guard(lock_);
    std::erase(all_, &q);
  }
  // Moves all others on that no thread uses now. False: none did anything, or another thread helps.
  bool help(const helped_queue& me) noexcept {
    const std::unique_lock guard(lock_, std::try_to_lock);
    bool any = false;
    if (guard.owns_lock())
      for (helped_queue* const q : all_)
        if (q != &me) any |= q->go_on_for_another();
    return any;
  }

 private:
  one_at_a_time lock_;
  std::vector<helped_queue*> all_;  // behind it
};

}  // namespace pmlab::stores::detail::chunk_store
