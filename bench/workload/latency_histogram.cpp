#include "bench/workload/latency_histogram.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace pmlab::workload {

void latency_histogram::merge(const latency_histogram& other) noexcept {
  std::transform(counts_.begin(), counts_.end(), other.counts_.begin(), counts_.begin(), std::plus<>());
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

void latency_histogram::clear() noexcept {
  std::fill(counts_.begin(), counts_.end(), 0);
  count_ = sum_ = max_ = 0;
}

double latency_histogram::mean() const noexcept {
  return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
}

std::uint64_t latency_histogram::percentile(double percent) const noexcept {
  if (count_ == 0) return 0;
  // 99.9 % of 1000 is 999.0000000000001 in doubles, and must be rank 999 all the same.
  constexpr double rounding = 1 - 1e-12;
  const double wanted = std::ceil(std::clamp(percent, 0.0, 100.0) / 100 * static_cast<double>(count_) * rounding);
  if (wanted >= static_cast<double>(count_)) return max_;
  const std::uint64_t rank = std::max<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1);
  std::uint64_t seen = 0;
  std::size_t bucket = 0;
  while (seen + counts_[bucket] < rank) seen += counts_[bucket++];
  return std::min(middle_of(bucket), max_);
}

std::uint64_t latency_histogram::middle_of(std::size_t bucket) noexcept {
  if (bucket <= fine_mask) return bucket;
  const auto shift = (bucket >> fine_bits) - 1;
  const std::uint64_t lowest = (bucket - (shift << fine_bits)) << shift;
  return lowest + ((std::uint64_t{1} << shift) - 1) / 2;
}

}  // namespace pmlab::workload
