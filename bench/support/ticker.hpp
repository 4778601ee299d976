// Real time, also under the simulated machine, whose clocks are virtual. Defined twice: for the program pmlab by a
// thread (ticker_thread.cpp), for pmlab-simulated, where threads are the machine's, by a signal (ticker_signal.cpp).
#pragma once

#include <memory>

namespace pmlab::bench {

// Seconds of a monotonic clock that is always real.
[[nodiscard]] double real_seconds() noexcept;

// While it lives, calls `tick(context)` five times a second beside any other work: `tick` may neither allocate,
// nor throw, nor wait for a lock. At most one at a time.
class ticker {
 public:
  ticker(void (*tick)(void*), void* context);
  ticker(const ticker&) = delete;
  ticker& operator=(const ticker&) = delete;
  // When it returns, `tick` is not running.
  ~ticker();

 private:
  struct running;
  std::unique_ptr<running> running_;
};

}  // namespace pmlab::bench
