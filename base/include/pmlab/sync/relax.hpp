// Backoff of a busy wait.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <thread>

namespace pmlab::sync {

// One step of a busy wait. The first steps execute a pause instruction; later ones yield the core, since the thread
// waited for may need it (more threads than cores). One object per wait.
class backoff {
 public:
  // Waits some nanoseconds, or lets another thread run.
  void pause() noexcept {
    if (++steps_ < spins_before_yield) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    } else {
      std::this_thread::yield();
    }
  }

 private:
  static constexpr unsigned spins_before_yield = 64;
  unsigned steps_ = 0;
};

}  // namespace pmlab::sync
