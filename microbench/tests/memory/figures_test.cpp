// Figures: the rule of repetitions, percentiles, pages.
#include "microbench/memory/figures.hpp"
#include "bench/engine/summary.hpp"
#include "microbench/memory/page_sizes.hpp"

#include <numeric>
#include <sstream>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::microbench {
namespace {

TEST(Spread, IsOfTheLastRepetitions) {
  EXPECT_FALSE(judge(std::vector<double>{}, 3, 5).enough);
  EXPECT_FALSE(judge(std::vector{100.0, 101.0}, 3, 5).enough) << "two are not three";
  EXPECT_TRUE(judge(std::vector{100.0, 101.0, 102.0}, 3, 5).enough);
  EXPECT_NEAR(judge(std::vector{100.0, 101.0, 102.0}, 3, 5).spread_percent, 100 * 2.0 / 101, 1e-9);
  EXPECT_FALSE(judge(std::vector{100.0, 105.0, 110.0}, 3, 5).enough);
  EXPECT_TRUE(judge(std::vector{300.0, 100.0, 101.0, 102.0}, 3, 5).enough) << "one that was disturbed is forgotten";
  EXPECT_FALSE(judge(std::vector{100.0, 101.0, 102.0, 300.0}, 3, 5).enough);
  EXPECT_TRUE(judge(std::vector{42.0}, 1, 5).enough);
}

TEST(Figures, MedianOfEvenAndOdd) {
  using bench::median;
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
}

TEST(Figures, PercentilesAreSamples) {
  std::vector<std::uint64_t> samples(1000);
  std::iota(samples.rbegin(), samples.rend(), 1);
  for (std::uint64_t& s : samples) s *= 1000;
  const latency_figures f = figures_of(samples);
  EXPECT_EQ(f.samples, 1000U);
  EXPECT_EQ(f.p50, 500);
  EXPECT_EQ(f.p90, 900);
  EXPECT_EQ(f.p99, 990);
  EXPECT_EQ(f.p99_9, 999);
  EXPECT_EQ(f.max, 1000);
  EXPECT_DOUBLE_EQ(f.mean, 500.5);
  EXPECT_FALSE(f.p99_99) << "a thousand samples cannot tell one in ten thousand";
  EXPECT_FALSE(f.p99_999);
}

TEST(Figures, RarePercentilesNeedTheirSamples) {
  std::vector<std::uint64_t> samples(100'000, 1000);
  EXPECT_TRUE(figures_of(samples).p99_999);
  samples.resize(99'000);
  EXPECT_FALSE(figures_of(samples).p99_999);
  EXPECT_TRUE(figures_of(samples).p99_99);
}

TEST(Figures, TypicalLeavesOutTheSlowestThousandth) {
  std::vector<std::uint64_t> samples(1000, 100'000);
  samples.back() = 4'000'000'000;
  EXPECT_DOUBLE_EQ(typical_ns(samples), 100);
}

TEST(Pages, AreReadFromSmaps) {
  const auto pages = [](const std::string& field) {
    std::istringstream smaps("7f0000000000-7f0004000000 rw-p 00000000 00:00 0 \nRss: 65536 kB\n" + field +
                             "\n7f0008000000-7f0009000000 rw-p 00000000 00:00 0 \nAnonHugePages: 16384 kB\n");
    return pages_under(smaps, 0x7f0000000000, 64 << 20);
  };
  EXPECT_EQ(pages("AnonHugePages:     65536 kB"), "2 MB pages");
  EXPECT_EQ(pages("ShmemPmdMapped:    65536 kB"), "2 MB pages");
  EXPECT_EQ(pages("AnonHugePages:     32768 kB"), "part in 2 MB pages");
  EXPECT_EQ(pages("AnonHugePages:         0 kB"), "4 KB pages");
  std::istringstream nothing;
  EXPECT_EQ(pages_under(nothing, 0, 1), "unknown");
}

}  // namespace
}  // namespace pmlab::microbench
