// The time until a drive's rate of writes is steady: until its buffer and its erased flash are used up, it is faster.
#pragma once

#include <cstddef>
#include <span>

namespace pmlab::drive {

// The rounds that are compared, and how far they may be apart: the figures of SNIA's performance test specification.
inline constexpr std::size_t rounds_compared = 5;
inline constexpr double most_range = 0.2;  // largest less smallest rate, as a part of the mean
inline constexpr double most_slope = 0.1;  // change of the line of least squares over these rounds, likewise

// Rounds of writes before a case that are not part of its figures.
struct settling {
  std::size_t rounds = 0;
  double seconds = 0;
  bool reached = false;  // the rate was steady at the end
};

// Whether the last rounds_compared of `rates` are steady. False: there are fewer.
[[nodiscard]] bool is_steady(std::span<const double> rates) noexcept;

}  // namespace pmlab::drive
