// Draws against exact probabilities, with fixed seeds: a test either always passes or always fails.
#include "support/message_of.hpp"

#include "bench/workload/distribution.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace {

using namespace pmlab::workload;
using pmlab::random_source;
using pmlab::tests::message_of;

constexpr std::uint64_t draws = 2'000'000;

// How often each of `records` records was drawn.
std::vector<std::uint64_t> histogram_of(sampler& draw, std::uint64_t records, std::uint64_t seed) {
  random_source random(seed);
  std::vector<std::uint64_t> counts(records);
  for (std::uint64_t i = 0; i < draws; ++i) ++counts.at(draw(random, records));
  return counts;
}

// Pearson's statistic for counts against weights, in standard deviations above its mean (cells expected to be rarer
// than 10 are put together).
double excess_chi_square(const std::vector<std::uint64_t>& counts, const std::vector<double>& weights) {
  const double whole = std::accumulate(weights.begin(), weights.end(), 0.0);
  const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}));
  double statistic = 0;
  double cells = 0;
  double expected = 0;
  double seen = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    expected += weights[i] / whole * total;
    seen += static_cast<double>(counts[i]);
    if (expected < 10 && i + 1 < counts.size()) continue;
    statistic += (seen - expected) * (seen - expected) / expected;
    cells += 1;
    expected = seen = 0;
  }
  return (statistic - (cells - 1)) / std::sqrt(2 * (cells - 1));
}

std::vector<double> zipfian_weights(std::uint64_t records, double theta) {
  std::vector<double> weights(records);
  for (std::uint64_t k = 0; k < records; ++k) weights[k] = std::pow(static_cast<double>(k + 1), -theta);
  return weights;
}

// The sum of 1 / k^theta over 1..n: term by term up to 1000, then by the Euler-Maclaurin formula (its error is below
// 1e-13 here).
double zeta(double n, double theta) {
  const double start = 1000;
  double sum = 0;
  for (int k = 1; k < 1000; ++k) sum += std::pow(k, -theta);
  const double rising = 1 - theta;
  const double integral = rising == 0 ? std::log(n / start) : (std::pow(n, rising) - std::pow(start, rising)) / rising;
  const auto slope = [&](double x) { return -theta * std::pow(x, -theta - 1); };
  return sum + integral + (std::pow(start, -theta) + std::pow(n, -theta)) / 2 + (slope(n) - slope(start)) / 12;
}

TEST(distribution, uniform_prefers_no_record) {
  sampler draw(parse_distribution("uniform"), 1000);
  EXPECT_LT(excess_chi_square(histogram_of(draw, 1000, 1), std::vector<double>(1000, 1)), 4);
}

class zipfian_test : public testing::TestWithParam<double> {};

TEST_P(zipfian_test, every_rank_has_its_probability) {
  for (const std::uint64_t records : {1U, 2U, 3U, 10U, 1000U, 100'000U}) {
    zipfian_ranks ranks(records, GetParam());
    random_source random(records);
    std::vector<std::uint64_t> counts(records);
    for (std::uint64_t i = 0; i < draws; ++i) ++counts.at(ranks(random));
    if (records == 1) continue;
    EXPECT_LT(excess_chi_square(counts, zipfian_weights(records, GetParam())), 4) << records;
  }
}

TEST_P(zipfian_test, a_thousand_million_records_have_the_probabilities_of_zeta) {
  constexpr std::uint64_t records = 1'000'000'000;
  zipfian_ranks ranks(records, GetParam());
  random_source random(5);
  const std::vector<double> bounds = {1, 2, 10, 100, 1e4, 1e6, 1e8, 5e8, 1e9};
  std::vector<std::uint64_t> counts(bounds.size());
  for (std::uint64_t i = 0; i < draws; ++i) {
    const auto rank = static_cast<double>(ranks(random));
    ++counts.at(static_cast<std::size_t>(std::upper_bound(bounds.begin(), bounds.end(), rank) - bounds.begin()));
  }
  std::vector<double> weights;
  double below = 0;
  for (const double bound : bounds) {
    double sum = 0;
    for (int k = 1; k <= std::min(bound, 100.0); ++k) sum += std::pow(k, -GetParam());
    if (bound > 100) sum = zeta(bound, GetParam());
    weights.push_back(sum - below);
    below = sum;
  }
  EXPECT_LT(excess_chi_square(counts, weights), 4);
}

INSTANTIATE_TEST_SUITE_P(theta, zipfian_test, testing::Values(0.0, 0.5, 0.99, 1.0, 1.2, 3.0));

TEST(distribution, the_check_of_probabilities_tells_099_from_098) {
  zipfian_ranks ranks(1000, 0.98);
  random_source random(6);
  std::vector<std::uint64_t> counts(1000);
  for (std::uint64_t i = 0; i < draws; ++i) ++counts.at(ranks(random));
  EXPECT_GT(excess_chi_square(counts, zipfian_weights(1000, 0.99)), 4);
}

TEST(distribution, zipfian_is_scattered_and_keeps_its_probabilities) {
  constexpr std::uint64_t records = 1000;
  sampler draw(parse_distribution("zipfian:0.99"), records);
  const std::vector<std::uint64_t> counts = histogram_of(draw, records, 7);
  const permutation scatter(records);
  std::vector<std::uint64_t> by_rank(records);
  for (std::uint64_t rank = 0; rank < records; ++rank) by_rank[rank] = counts[scatter(rank)];
  EXPECT_LT(excess_chi_square(by_rank, zipfian_weights(records, 0.99)), 4);
  // The ten most popular ones are no neighbours at the start.
  const auto first_ten = std::accumulate(counts.begin(), counts.begin() + 10, std::uint64_t{0});
  const auto top_ten = std::accumulate(by_rank.begin(), by_rank.begin() + 10, std::uint64_t{0});
  EXPECT_LT(first_ten * 4, top_ten);
}

TEST(distribution, latest_is_zipfian_by_age_and_follows_growth) {
  constexpr std::uint64_t records = 1000;
  sampler draw(parse_distribution("latest"), 2 * records);
  for (const std::uint64_t present : {records, 2 * records}) {
    std::vector<std::uint64_t> counts = histogram_of(draw, present, present);
    std::reverse(counts.begin(), counts.end());
    EXPECT_LT(excess_chi_square(counts, zipfian_weights(present, 0.99)), 4) << present;
  }
}

TEST(distribution, self_similar_gives_eighty_percent_to_twenty_percent_at_every_scale) {
  constexpr std::uint64_t records = 100'000;
  sampler draw(parse_distribution("self-similar:0.2"), records);
  std::vector<std::uint64_t> counts = histogram_of(draw, records, 8);
  const permutation scatter(records);
  std::vector<std::uint64_t> by_rank(records);
  for (std::uint64_t rank = 0; rank < records; ++rank) by_rank[rank] = counts[scatter(rank)];
  const auto share_below = [&](std::uint64_t rank) {
    return static_cast<double>(std::accumulate(by_rank.begin(), by_rank.begin() + static_cast<std::ptrdiff_t>(rank),
                                               std::uint64_t{0})) /
           static_cast<double>(draws);
  };
  EXPECT_NEAR(share_below(records / 5), 0.8, 0.001);
  EXPECT_NEAR(share_below(records / 25), 0.64, 0.0015);
  EXPECT_NEAR(share_below(records / 125), 0.512, 0.002);

  // Record by record: rank k has F(k + 1) - F(k), F(x) = (x / records)^(log 0.8 / log 0.2).
  std::vector<double> weights(records);
  const double exponent = std::log(0.8) / std::log(0.2);
  for (std::uint64_t k = 0; k < records; ++k)
    weights[k] =
        std::pow(static_cast<double>(k + 1) / records, exponent) - std::pow(static_cast<double>(k) / records, exponent);
  EXPECT_LT(excess_chi_square(by_rank, weights), 4);
}

TEST(distribution, self_similar_half_is_uniform) {
  sampler draw(parse_distribution("self-similar:0.5"), 1000);
  EXPECT_LT(excess_chi_square(histogram_of(draw, 1000, 9), std::vector<double>(1000, 1)), 4);
}

TEST(distribution, sequential_goes_round) {
  sampler draw(parse_distribution("sequential"), 5, 3);
  random_source random(1);
  std::vector<std::uint64_t> drawn;
  drawn.reserve(7);
  for (int i = 0; i < 7; ++i) drawn.push_back(draw(random, 5));
  EXPECT_EQ(drawn, (std::vector<std::uint64_t>{3, 4, 0, 1, 2, 3, 4}));
}

TEST(distribution, every_shape_stays_among_the_records_that_are_there) {
  for (const char* const name :
       {"uniform", "zipfian:0.99", "zipfian:10", "latest", "sequential", "self-similar:0.2", "self-similar:0.000001"}) {
    sampler draw(parse_distribution(name), 1000);
    random_source random(10);
    for (const std::uint64_t present : {1U, 2U, 3U, 500U, 999U, 1000U})
      for (int i = 0; i < 1000; ++i) ASSERT_LT(draw(random, present), present) << name;
    sampler only(parse_distribution(name), 1);
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(only(random, 1), 0U) << name;
  }
}

TEST(distribution, growth_leaves_the_popularity_of_a_record_as_it_is) {
  constexpr std::uint64_t capacity = 1000;
  sampler early(parse_distribution("zipfian:0.99"), capacity);
  sampler late(parse_distribution("zipfian:0.99"), capacity);
  const std::vector<std::uint64_t> before = histogram_of(early, 900, 11);
  const std::vector<std::uint64_t> after = histogram_of(late, capacity, 12);
  const auto most = [](const std::vector<std::uint64_t>& counts, std::ptrdiff_t end) {
    return std::max_element(counts.begin(), counts.begin() + end) - counts.begin();
  };
  EXPECT_EQ(most(before, 900), most(after, 900));
}

TEST(distribution, names_are_read_and_written) {
  EXPECT_EQ(parse_distribution("zipfian"), (distribution{distribution_kind::zipfian, 0.99}));
  EXPECT_EQ(parse_distribution("zipfian:1.2"), (distribution{distribution_kind::zipfian, 1.2}));
  EXPECT_EQ(parse_distribution("latest"), (distribution{distribution_kind::latest, 0.99}));
  EXPECT_EQ(parse_distribution("self-similar:.1"), (distribution{distribution_kind::self_similar, 0.1}));
  for (const char* const name : {"uniform", "zipfian:0.99", "latest:0.5", "sequential", "self-similar:0.2"})
    EXPECT_EQ(parse_distribution(name).name(), name);
  for (const std::string_view name : distribution_names())
    EXPECT_TRUE(parse_distribution(name).name().starts_with(name));
}

TEST(distribution, bad_names_and_parameters_are_refused) {
  const auto message = [](const char* text) { return message_of([&] { (void)parse_distribution(text); }); };
  EXPECT_NE(message("zipfan:0.99").find("did you mean zipfian"), std::string::npos) << message("zipfan:0.99");
  EXPECT_NE(message("unifrom").find("did you mean uniform"), std::string::npos);
  for (const char* const bad : {"", "uniform:1", "sequential:", "zipfian:", "zipfian:x", "zipfian:0.99x", "zipfian:-1",
                                "zipfian:11", "zipfian:nan", "zipfian:inf", "zipfian: 1", "self-similar:0",
                                "self-similar:0.6", "self-similar:-0.2", "latest:-1"})
    EXPECT_NE(message(bad), "") << bad;
}

}  // namespace
