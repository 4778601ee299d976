#include "bench/workload/latency_histogram.hpp"
#include <pmlab/base/random.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace {

using namespace pmlab::workload;
using pmlab::random_source;

constexpr double percents[] = {0, 0.01, 1, 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 99.999, 100};

// The definition: the smallest value that at least `percent` % do not exceed.
std::uint64_t exact_percentile(const std::vector<std::uint64_t>& sorted, double percent) {
  std::size_t rank = 1;
  while (static_cast<long double>(rank) * 100 < static_cast<long double>(percent) * sorted.size() * (1 - 1e-12L))
    ++rank;
  return sorted.at(rank - 1);
}

void expect_within_bound(std::vector<std::uint64_t> values) {
  latency_histogram histogram;
  for (const std::uint64_t value : values) histogram.record(value);
  std::sort(values.begin(), values.end());
  for (const double percent : percents) {
    const auto exact = static_cast<double>(exact_percentile(values, percent));
    EXPECT_NEAR(static_cast<double>(histogram.percentile(percent)), exact, exact / 256) << percent;
  }
  EXPECT_EQ(histogram.count(), values.size());
  EXPECT_EQ(histogram.max(), values.back());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  EXPECT_NEAR(histogram.mean(), sum / static_cast<double>(values.size()), 1e-9 * sum);
}

TEST(latency_histogram, percentiles_are_within_the_bound_of_the_exact_ones) {
  random_source random(1);
  std::vector<std::uint64_t> log_uniform;
  log_uniform.reserve(100'000);
  for (int i = 0; i < 100'000; ++i) log_uniform.push_back(static_cast<std::uint64_t>(std::exp(random.unit() * 30)));
  expect_within_bound(log_uniform);

  std::vector<std::uint64_t> latencies;  // 300 ns, with a long tail
  latencies.reserve(100'000);
  for (int i = 0; i < 100'000; ++i) latencies.push_back(static_cast<std::uint64_t>(300 / (1 - random.unit())));
  expect_within_bound(latencies);

  for (std::uint64_t size : {1U, 2U, 3U, 10U, 99U, 100U, 101U, 1000U}) {
    std::vector<std::uint64_t> few;
    for (std::uint64_t i = 0; i < size; ++i) few.push_back(random.below(100'000));
    expect_within_bound(few);
  }
}

TEST(latency_histogram, small_values_are_exact) {
  latency_histogram histogram;
  for (std::uint64_t value = 0; value < 200; ++value) histogram.record(value);
  for (std::uint64_t rank = 1; rank <= 200; ++rank)
    EXPECT_EQ(histogram.percentile(static_cast<double>(rank) / 2), rank - 1);
}

// 99.9 / 100 * 1000 is more than 999 in doubles.
TEST(latency_histogram, rounding_moves_no_rank) {
  latency_histogram histogram;
  for (int i = 0; i < 999; ++i) histogram.record(1);
  histogram.record(100);
  EXPECT_EQ(histogram.percentile(99.9), 1U);
  EXPECT_EQ(histogram.percentile(99.91), 100U);
}

TEST(latency_histogram, every_power_of_two_and_its_neighbours_are_within_the_bound) {
  for (int bit = 0; bit < 64; ++bit)
    for (const std::uint64_t offset : {~std::uint64_t{0}, std::uint64_t{0}, std::uint64_t{1}}) {
      const std::uint64_t value = (std::uint64_t{1} << bit) + offset;
      latency_histogram histogram;
      histogram.record(value);
      histogram.record(std::numeric_limits<std::uint64_t>::max());
      const auto exact = static_cast<double>(value);
      EXPECT_NEAR(static_cast<double>(histogram.percentile(50)), exact, exact / 256) << value;
      EXPECT_EQ(histogram.percentile(100), std::numeric_limits<std::uint64_t>::max());
    }
}

TEST(latency_histogram, merging_is_recording_together) {
  random_source random(2);
  latency_histogram together;
  latency_histogram first;
  latency_histogram second;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t value = random.next() >> random.below(64);
    together.record(value >> 16);
    (i % 3 == 0 ? first : second).record(value >> 16);
  }
  first.merge(second);
  EXPECT_EQ(first.count(), together.count());
  EXPECT_EQ(first.max(), together.max());
  EXPECT_DOUBLE_EQ(first.mean(), together.mean());
  for (const double percent : percents) EXPECT_EQ(first.percentile(percent), together.percentile(percent));
}

TEST(latency_histogram, nothing_recorded_is_zero_everywhere) {
  latency_histogram histogram;
  EXPECT_EQ(histogram.count(), 0U);
  EXPECT_EQ(histogram.mean(), 0);
  EXPECT_EQ(histogram.max(), 0U);
  EXPECT_EQ(histogram.percentile(50), 0U);
  histogram.record(5);
  histogram.clear();
  EXPECT_EQ(histogram.percentile(100), 0U);
  EXPECT_EQ(histogram.count(), 0U);
}

}  // namespace
