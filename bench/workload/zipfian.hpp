// Ranks that follow Zipf's law.
#pragma once

#include <pmlab/base/random.hpp>

#include <cmath>
#include <cstdint>

namespace pmlab::workload {

// Draws ranks 0..size-1 with probability 1 / (rank + 1)^theta / zeta(size, theta), by rejection-inversion (Hörmann and
// Derflinger, 1996): no table, no sum over the ranks, and the law itself and not an approximation of it, within the
// rounding of doubles (about 1e-14 relative at theta 0.99; the draw is made of 53 random bits, so a rank whose
// probability is below 2^-53 need not come up in proportion). One logarithm and one exponential a draw; 1.0 to 1.3
// draws a rank. A new size costs as much as a draw. Not thread-safe: one per thread.
class zipfian_ranks {
 public:
  // `size` is at least 1; `theta` is at least 0 (0: uniform; 1: harmonic).
  zipfian_ranks(std::uint64_t size, double theta) noexcept
      : theta_(theta), rising_(1 - theta), first_(area(1.5) - 1), sure_(2 - inverse_area(area(2.5) - density(2))) {
    resize(size);
  }

  void resize(std::uint64_t size) noexcept {
    size_ = static_cast<double>(size);
    last_ = area(size_ + 0.5);
  }

  std::uint64_t operator()(random_source& random) const noexcept {
    // Under the curve x^-theta, each k has the strip [k - 1/2, k + 1/2], a little larger than its probability: a point
    // chosen in the strips is kept if it falls into the part of the strip that is as large as the probability.
    for (;;) {
      const double point = last_ + random.unit() * (first_ - last_);
      const double x = inverse_area(point);
      const double k = std::fmin(std::fmax(std::floor(x + 0.5), 1), size_);
      if (k - x <= sure_ || point >= area(k + 0.5) - density(k)) return static_cast<std::uint64_t>(k) - 1;
    }
  }

 private:
  [[nodiscard]] double density(double x) const noexcept { return std::exp(-theta_ * std::log(x)); }

  // The integral of x^-theta from 1 to x, precise for theta near 1 too.
  [[nodiscard]] double area(double x) const noexcept {
    const double logarithm = std::log(x);
    return rising_ == 0 ? logarithm : std::expm1(rising_ * logarithm) / rising_;
  }

  [[nodiscard]] double inverse_area(double value) const noexcept {
    return std::exp(rising_ == 0 ? value : std::log1p(std::fmax(rising_ * value, -1)) / rising_);
  }

  double theta_;
  double rising_;    // 1 - theta: the exponent of the integral
  double first_;     // where the strip of rank 0 begins
  double sure_;      // points this near to the left of k are kept without looking further
  double size_ = 1;  // as a double: exact up to 2^53 ranks
  double last_ = 0;  // where the strip of the last rank ends
};

}  // namespace pmlab::workload
