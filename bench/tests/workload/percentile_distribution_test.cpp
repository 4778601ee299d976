#include "bench/workload/percentile_distribution.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace {

using pmlab::workload::latency_histogram;
using pmlab::workload::percentile_distribution;

struct line {
  double value, percentile;
  std::uint64_t count;
};

std::vector<line> lines_of(const std::string& text) {
  std::vector<line> lines;
  std::istringstream all(text);
  for (std::string one; std::getline(all, one);) {
    line read{};
    std::istringstream words(one);
    if (words >> read.value >> read.percentile >> read.count) lines.push_back(read);
  }
  return lines;
}

TEST(PercentileDistribution, has_the_percentiles_of_the_histogram) {
  latency_histogram histogram;
  std::uint64_t value = 1;
  for (int i = 0; i < 100'000; ++i) histogram.record((value = value * 6'364'136'223'846'793'005 + 1) >> 44);
  const std::vector<line> lines = lines_of(percentile_distribution(histogram));
  ASSERT_GT(lines.size(), 30U);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(lines[i].value, static_cast<double>(histogram.percentile(100 * lines[i].percentile))) << i;
    if (i > 0) {
      EXPECT_GT(lines[i].percentile, lines[i - 1].percentile);
      EXPECT_GE(lines[i].count, lines[i - 1].count);
    }
  }
  EXPECT_EQ(lines.back().percentile, 1);
  EXPECT_EQ(lines.back().count, 100'000U);
}

TEST(PercentileDistribution, has_the_form_that_plotters_read) {
  latency_histogram histogram;
  for (const std::uint64_t value : {10, 10, 10, 50}) histogram.record(value);
  EXPECT_EQ(percentile_distribution(histogram),
            "       Value     Percentile TotalCount 1/(1-Percentile)\n\n"
            "      10.000 0.000000000000          3           1.00\n"
            "      10.000 0.100000000000          3           1.11\n"
            "      10.000 0.200000000000          3           1.25\n"
            "      10.000 0.300000000000          3           1.43\n"
            "      10.000 0.400000000000          3           1.67\n"
            "      10.000 0.500000000000          3           2.00\n"
            "      10.000 0.550000000000          3           2.22\n"
            "      10.000 0.600000000000          3           2.50\n"
            "      10.000 0.650000000000          3           2.86\n"
            "      10.000 0.700000000000          3           3.33\n"
            "      10.000 0.750000000000          3           4.00\n"
            "      50.000 1.000000000000          4\n"
            "#[Mean    =       20.000, StdDeviation   =       17.321]\n"
            "#[Max     =       50.000, Total count    =            4]\n"
            "#[Buckets =           58, SubBuckets     =          128]\n");
}

TEST(PercentileDistribution, of_nothing_has_no_lines) { EXPECT_TRUE(lines_of(percentile_distribution({})).empty()); }

}  // namespace
