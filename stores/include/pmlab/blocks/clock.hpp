// Clocks of a modelled drive: where a queue's time comes from, and what waiting means.
//
//   emulated_clock   the real one: waiting takes time
//   virtual_clock    a number: waiting advances it, and results repeat to the digit
//
// Another one, for example a simulated thread's, is a class that meets `drive_clock`.
#pragma once

#include <pmlab/blocks/flash/time.hpp>
#include <pmlab/media/clock.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string_view>

#include <ctime>

#include <sys/prctl.h>

namespace pmlab::blocks {

// A handle, copied into each queue. `kind` names devices that use it ("emulated"). `wait_until` returns when `now` is
// at least the given time. Used by the thread of the queue only.
template <class C>
concept drive_clock = std::copy_constructible<C> && requires(C& clock, picoseconds time) {
  { C::kind } -> std::convertible_to<std::string_view>;  // names devices on this clock: "emulated"
  { clock.now() } -> std::same_as<picoseconds>;          // time of the thread of the queue
  clock.wait_until(time);                                // returns when `now` is at least that
};

// The real clock. A wait of more than 30 us sleeps and leaves the core to others; the last 30 us are spent looking at
// the clock, since a sleeper wakes up about 20 us late. The thread's timer slack, 50 us by default, is 1 ns meanwhile.
class emulated_clock {
 public:
  static constexpr std::string_view kind = "emulated";

  [[nodiscard]] picoseconds now() const noexcept { return clock_->now(); }

  void wait_until(picoseconds time) const noexcept {
    for (picoseconds at = now(); at < time; at = now()) {
      if (time - at > spun) {
        sleep_for((time - at - spun) / 1000);
      } else {
        pause();
      }
    }
  }

 private:
  static constexpr picoseconds spun = 30'000'000;

  static void sleep_for(std::uint64_t ns) noexcept {
    constexpr std::uint64_t second = 1'000'000'000;
    const timespec span{static_cast<time_t>(ns / second), static_cast<long>(ns % second)};
    const int slack = prctl(PR_GET_TIMERSLACK);
    prctl(PR_SET_TIMERSLACK, 1UL);
    nanosleep(&span, nullptr);
    if (slack > 0) prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack));
  }

  static void pause() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  const media::fast_clock* clock_ = &media::fast_clock::instance();
};

// A line of time of one logical thread, with all its queues on all its drives. It begins at 0. Not thread-safe.
class virtual_time {
 public:
  // The time since the beginning.
  [[nodiscard]] picoseconds now() const noexcept { return now_; }
  // Takes time for work between requests.
  void advance(picoseconds by) noexcept { now_ += by; }
  // Goes on to `time`, if that is later.
  void advance_to(picoseconds time) noexcept { now_ = std::max(now_, time); }

 private:
  picoseconds now_ = 0;
};

// The clock of a virtual_time, which outlives it. Several logical threads in one real one have a virtual_time each; the
// result repeats if their calls are made in the same order. Let the one that is furthest behind go next, so that the
// drive sees requests in the order of time.
class virtual_clock {
 public:
  static constexpr std::string_view kind = "timed";

  // `time` outlives it.
  explicit virtual_clock(virtual_time& time) noexcept : time_(&time) {}

  [[nodiscard]] picoseconds now() const noexcept { return time_->now(); }
  void wait_until(picoseconds time) const noexcept { time_->advance_to(time); }

 private:
  virtual_time* time_;
};

static_assert(drive_clock<emulated_clock>);
static_assert(drive_clock<virtual_clock>);

}  // namespace pmlab::blocks
