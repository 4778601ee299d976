// A clock that is cheap enough to read at every memory access.
#pragma once

#include <pmlab/base/platform.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <type_traits>

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>
#endif

namespace pmlab::media {

namespace detail {

// The clock of a platform whose time is virtual: it is the calling thread's.
class virtual_time_clock {
 public:
  [[nodiscard]] static const virtual_time_clock& instance() {
    static const virtual_time_clock clock;
    return clock;
  }
  [[nodiscard]] std::uint64_t now() const noexcept { return platform::now(); }
  [[nodiscard]] std::uint64_t now_after_loads() const noexcept { return platform::now(); }
  [[nodiscard]] bool uses_tsc() const noexcept { return false; }
  [[nodiscard]] double tsc_hz() const noexcept { return 0; }
};

// The clock of every other platform: picoseconds since the first use in this process. Reads the CPU's time-stamp
// counter if that runs at a constant rate in every power state ("invariant"), calibrated against
// std::chrono::steady_clock; otherwise reads steady_clock. Thread-safe. The first use takes 20 ms.
class real_time_clock {
 public:
  [[nodiscard]] static const real_time_clock& instance() {
    static const real_time_clock clock;
    return clock;
  }

  // May be read before earlier loads have completed.
  [[nodiscard]] std::uint64_t now() const noexcept {
#if defined(__x86_64__)
    if (uses_tsc_) return to_picoseconds(__rdtsc());
#endif
    return since_start();
  }

  // Read after all earlier loads have completed.
  [[nodiscard]] std::uint64_t now_after_loads() const noexcept {
#if defined(__x86_64__)
    _mm_lfence();
#endif
    return now();
  }

  // True: the time-stamp counter; false: steady_clock, whose cost limits the emulation.
  [[nodiscard]] bool uses_tsc() const noexcept { return uses_tsc_; }

  // Ticks of the time-stamp counter per second; 0 where it is not used.
  [[nodiscard]] double tsc_hz() const noexcept {
    return uses_tsc_ ? 1e12 * fraction / static_cast<double>(picoseconds_per_tick_) : 0;
  }

 private:
  using steady = std::chrono::steady_clock;
  __extension__ using wide = unsigned __int128;

  static constexpr unsigned fraction_bits = 32;
  static constexpr double fraction = 4294967296.0;
  static constexpr std::chrono::milliseconds calibration_time{20};

  real_time_clock() : start_(steady::now()) {
#if defined(__x86_64__)
    if (!has_invariant_tsc()) return;
    const reading from = read_both();
    while (steady::now() - from.time < calibration_time) _mm_pause();
    const reading to = read_both();
    const double ps = 1000.0 * static_cast<double>(std::chrono::nanoseconds(to.time - from.time).count());
    if (to.ticks <= from.ticks) return;
    picoseconds_per_tick_ = static_cast<std::uint64_t>(ps / static_cast<double>(to.ticks - from.ticks) * fraction);
    start_ticks_ = from.ticks;
    uses_tsc_ = true;
#endif
  }

#if defined(__x86_64__)
  struct reading {
    std::uint64_t ticks;
    steady::time_point time;
  };

  [[nodiscard]] static bool has_invariant_tsc() noexcept {
    constexpr unsigned power_management = 0x80000007;
    constexpr unsigned invariant = 1U << 8;
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    return __get_cpuid(power_management, &eax, &ebx, &ecx, &edx) != 0 && (edx & invariant) != 0;
  }

  // Both clocks at one instant: of several tries, the one with the least time in between.
  [[nodiscard]] static reading read_both() noexcept {
    reading best{};
    std::uint64_t least = ~std::uint64_t{0};
    for (int i = 0; i < 16; ++i) {
      const std::uint64_t before = __rdtsc();
      const steady::time_point time = steady::now();
      const std::uint64_t after = __rdtsc();
      if (after - before >= least) continue;
      least = after - before;
      best = {before + (after - before) / 2, time};
    }
    return best;
  }

  [[nodiscard]] std::uint64_t to_picoseconds(std::uint64_t ticks) const noexcept {
    const std::uint64_t since = std::max(ticks, start_ticks_) - start_ticks_;
    return static_cast<std::uint64_t>((static_cast<wide>(since) * picoseconds_per_tick_) >> fraction_bits);
  }
#endif

  [[nodiscard]] std::uint64_t since_start() const noexcept {
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(steady::now() - start_).count()) * 1000;
  }

  steady::time_point start_;
  std::uint64_t start_ticks_ = 0;
  std::uint64_t picoseconds_per_tick_ = 0;  // in units of 2^-32
  bool uses_tsc_ = false;
};

}  // namespace detail

// Picoseconds since the first use in this process. Reads the CPU's time-stamp counter where that runs at a constant
// rate in every power state ("invariant"), calibrated against std::chrono::steady_clock; elsewhere reads steady_clock.
// Where the platform's time is virtual: the virtual time of the calling thread. `instance()` is the one clock of this
// process. Thread-safe. The first use takes 20 ms.
using fast_clock = std::conditional_t<platform::has_virtual_time, detail::virtual_time_clock, detail::real_time_clock>;

}  // namespace pmlab::media
