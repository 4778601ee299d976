// From many numbers to few.
#pragma once

#include "tools/microbench/result.hpp"

#include <cstdint>
#include <span>
#include <vector>

namespace pmlab::microbench {

// How far repetitions agree. The last `window` of them are looked at: one that was disturbed does not spoil those after
// it.
struct steadiness {
  double spread_percent = 0;  // (max - min) / median of the window
  bool enough = false;        // there are `window` values, and the spread is below the limit
};
[[nodiscard]] steadiness judge(std::span<const double> values, std::size_t window, double limit_percent);

// Sorts `picoseconds`. A percentile is the smallest sample that so many percent of the samples do not exceed.
[[nodiscard]] latency_figures figures_of(std::vector<std::uint64_t>& picoseconds);

// The mean without the slowest thousandth, in nanoseconds: what a machine's interrupts cost does not count, what its
// memory does at every hundredth access does. `sorted` is not empty.
[[nodiscard]] double typical_ns(std::span<const std::uint64_t> sorted);

}  // namespace pmlab::microbench
