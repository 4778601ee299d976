// Counters of Optane modules: what their media did, by the program ipmctl.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pmlab::bench {

// Sums over all modules of this machine: other programs' work is in them. Reads and writes of the media have 64 bytes.
struct pm_counts {
  static constexpr std::size_t kinds = 4;
  static constexpr std::array<std::string_view, kinds> names = {"media_reads", "media_writes", "read_requests",
                                                                "write_requests"};

  std::array<std::uint64_t, kinds> counts{};

  pm_counts& operator+=(const pm_counts& more) noexcept {
    for (std::size_t i = 0; i < kinds; ++i) counts[i] += more.counts[i];
    return *this;
  }
  // Since `before`. They begin again when the machine is switched on.
  [[nodiscard]] pm_counts since(const pm_counts& before) const noexcept {
    pm_counts difference;
    for (std::size_t i = 0; i < kinds; ++i) difference.counts[i] = counts[i] - before.counts[i];
    return difference;
  }
};

struct pm_reading {
  std::optional<pm_counts> counts;
  unsigned modules = 0;
  std::string problem;  // why there are none, with the remedy; empty: they were read
};

// Runs `ipmctl show -performance`, for up to 30 s. Thread safety: any.
[[nodiscard]] pm_reading read_pm_counters();

// What that prints; `problem` if it is nothing of the kind. The lines of a module are behind one that names it:
//
//   ---DimmID=0x0001---
//      MediaReads=0x0000000000000000000000000000beef
[[nodiscard]] pm_reading pm_counters_in(std::string_view printed);

// Whether a pool at `path`, which is there, lies in persistent memory. PMEM_IS_PMEM_FORCE=1 decides that it does, as
// for libpmem.
[[nodiscard]] bool is_in_persistent_memory(const std::string& path);

}  // namespace pmlab::bench
