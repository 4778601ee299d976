// Figures that stand for many numbers.
#pragma once

#include "microbench/memory/result.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace pmlab::microbench {

inline constexpr double picoseconds_per_ns = 1000;

// The agreement of repetitions. Only the last `window` of them count: a disturbed one does not affect later ones.
struct steadiness {
  double spread_percent = 0;  // (max - min) / median of the window
  bool enough = false;        // there are `window` values, and the spread is below the limit
};
[[nodiscard]] steadiness judge(std::span<const double> values, std::size_t window, double limit_percent);

// Sorts `picoseconds`. A percentile is the smallest sample that so many percent of the samples do not exceed.
[[nodiscard]] latency_figures figures_of(std::vector<std::uint64_t>& picoseconds);

// The mean without the slowest thousandth, in nanoseconds: excludes the machine's interrupts, includes what the memory
// does at every hundredth access. REQUIRES: `sorted` is not empty.
[[nodiscard]] double typical_ns(std::span<const std::uint64_t> sorted);

}  // namespace pmlab::microbench
