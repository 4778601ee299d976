// Operations that begin at given times (an open loop).
#pragma once

#include <pmlab/base/platform.hpp>
#include <pmlab/media/clock.hpp>

#include <chrono>
#include <cstdint>
#include <thread>

namespace pmlab::bench {

// Each operation of a thread has a time to begin, `period` after that of the one before, whether that has ended or not.
// Its latency counts from there: a stall shows in every operation that it delayed, not in the one that it hit alone.
class pacer {
 public:
  // In picoseconds of media::fast_clock.
  pacer(std::uint64_t first, std::uint64_t period) noexcept : next_(first), period_(period) {}

  // Waits for the next operation's time, and returns it. Does not wait if that is over.
  std::uint64_t wait(const media::fast_clock& clock) {
    const std::uint64_t begins = next_;
    next_ += period_;
    for (std::uint64_t now = clock.now(); now < begins; now = clock.now())
      if (begins - now > longest_spin) {
        std::this_thread::sleep_for(std::chrono::nanoseconds((begins - now - longest_spin / 2) / 1000));
      }
    return begins;
  }

  // How late the next operation is at `now`; 0: it is not due yet.
  [[nodiscard]] std::uint64_t lag(std::uint64_t now) const noexcept { return now > next_ ? now - next_ : 0; }

 private:
  // A sleeping thread is woken up late by up to some 60 us.
  static constexpr std::uint64_t longest_spin = 200'000'000;

  std::uint64_t next_;
  std::uint64_t period_;
};

}  // namespace pmlab::bench
