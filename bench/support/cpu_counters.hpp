// Counters of the CPU: cycles, instructions, and misses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pmlab::bench {

// Events of user code. One that the kernel does not count is not there.
struct cpu_events {
  static constexpr std::size_t kinds = 4;
  static constexpr std::array<std::string_view, kinds> names = {"cycles", "instructions", "llc_misses", "dtlb_misses"};

  std::array<std::optional<double>, kinds> counts{};

  cpu_events& operator+=(const cpu_events& more) noexcept {
    for (std::size_t i = 0; i < kinds; ++i)
      if (more.counts[i]) counts[i] = counts[i].value_or(0) + *more.counts[i];
    return *this;
  }
  [[nodiscard]] bool any() const noexcept {
    for (const auto& count : counts)
      if (count) return true;
    return false;
  }
};

// Counts events of the thread that made it, from then on, by perf_event_open. Not thread safe.
class cpu_counters {
 public:
  cpu_counters() noexcept;
  cpu_counters(const cpu_counters&) = delete;
  cpu_counters& operator=(const cpu_counters&) = delete;
  ~cpu_counters();

  // Since it was made. Where the CPU has fewer counters than events, they take turns, and this is the estimate of a
  // whole.
  [[nodiscard]] cpu_events events() const noexcept;

  // Why the kernel does not count some of the events, with the remedy; empty: it counts all.
  [[nodiscard]] static std::string refusal();

 private:
  std::array<int, cpu_events::kinds> files_{};
};

}  // namespace pmlab::bench
