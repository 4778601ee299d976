// Percentiles of millions of latencies in constant memory.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pmlab::workload {

// Counts values (nanoseconds) in buckets whose width grows with the value: each power of two is cut into 128 equal
// ones. Values below 256 are kept exactly; above, a percentile is off by at most 1/256 (0.4 %) of the exact one. All
// 64-bit values fit. 58 KiB, allocated once.
//
// Not thread-safe: one per thread, merged at the end.
class latency_histogram {
 public:
  static constexpr int fine_bits = 7;  // a power of two has 2^fine_bits buckets

  latency_histogram() : counts_(buckets) {}

  // Allocates nothing; a few nanoseconds.
  void record(std::uint64_t nanoseconds) noexcept {
    ++counts_[bucket_of(nanoseconds)];
    ++count_;
    sum_ += nanoseconds;
    if (nanoseconds > max_) max_ = nanoseconds;
  }

  void merge(const latency_histogram& other) noexcept;
  void clear() noexcept;

  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  // Nanoseconds, exact while the sum of all values stays below 2^64 (584 years). 0 if nothing was recorded.
  [[nodiscard]] double mean() const noexcept;
  // Nanoseconds, exact. 0 if nothing was recorded.
  [[nodiscard]] std::uint64_t max() const noexcept { return max_; }
  // The smallest value (nanoseconds) that at least `percent` % of the recorded values do not exceed: 50 is the median,
  // 100 the maximum. `percent` outside 0 ... 100 counts as the nearer end. 0 if nothing was recorded.
  [[nodiscard]] std::uint64_t percentile(double percent) const noexcept;

  // Calls function(value, count) for each bucket that is not empty, with the value (nanoseconds) in its middle, the
  // least one first.
  template <class Function>
  void for_each(Function&& function) const {
    for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket)
      if (counts_[bucket] != 0) function(middle_of(bucket), counts_[bucket]);
  }

 private:
  static constexpr std::size_t buckets = (64 - fine_bits + 1) << fine_bits;

  // Values below 2^(fine_bits + 1) have a bucket each. A larger one is shifted right until fine_bits + 1 bits are left:
  // the first of them is 1 and, with the number of shifts, selects the power of two; the others select the bucket in
  // it.
  [[nodiscard]] static std::size_t bucket_of(std::uint64_t value) noexcept {
    const int shift = static_cast<int>(std::bit_width(value | fine_mask)) - (fine_bits + 1);
    return (static_cast<std::size_t>(shift) << fine_bits) + static_cast<std::size_t>(value >> shift);
  }

  // The value in the middle of a bucket.
  [[nodiscard]] static std::uint64_t middle_of(std::size_t bucket) noexcept;

  static constexpr std::uint64_t fine_mask = (std::uint64_t{1} << (fine_bits + 1)) - 1;

  std::vector<std::uint64_t> counts_;
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace pmlab::workload
