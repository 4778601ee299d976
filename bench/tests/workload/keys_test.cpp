#include "bench/workload/keys.hpp"
#include <pmlab/base/random.hpp>
#include "bench/workload/permutation.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <unordered_set>
#include <vector>

namespace {

using namespace pmlab::workload;
using pmlab::random_source;

constexpr std::uint64_t largest = std::numeric_limits<std::uint64_t>::max();

// A function of the 64-bit words with a left inverse gives no two of them the same key; being on as many words as it
// comes from, it gives every key.
TEST(keys, key_of_is_undone_by_index_of_everywhere) {
  random_source random(1);
  for (const std::uint64_t edge : {std::uint64_t{0}, std::uint64_t{1}, largest - 1, largest, std::uint64_t{1} << 63})
    EXPECT_EQ(index_of(key_of(edge)), edge);
  for (int bit = 0; bit < 64; ++bit) EXPECT_EQ(index_of(key_of(std::uint64_t{1} << bit)), std::uint64_t{1} << bit);
  for (int i = 0; i < 1'000'000; ++i) {
    const std::uint64_t word = random.next();
    ASSERT_EQ(index_of(key_of(word)), word);
    ASSERT_EQ(key_of(index_of(word)), word);
  }
}

TEST(keys, neighbouring_indexes_differ_in_about_half_of_the_bits_of_their_keys) {
  std::uint64_t differing = 0;
  constexpr std::uint64_t pairs = 100'000;
  // Not from 0: g++ 12 -O3 folds the end of a vectorised loop of popcounts wrongly where it knows all the numbers.
  const std::uint64_t start = random_source(5).next();
  for (std::uint64_t i = start; i != start + pairs; ++i)
    differing += static_cast<std::uint64_t>(std::popcount(key_of(i) ^ key_of(i + 1)));
  EXPECT_NEAR(static_cast<double>(differing) / pairs, 32, 0.1);
}

TEST(keys, values_show_their_key_and_their_sequence) {
  random_source random(2);
  for (const std::uint64_t key : {std::uint64_t{0}, largest}) {
    EXPECT_TRUE(is_value_of(value_of(key, 0), key));
    EXPECT_EQ(sequence_of(value_of(key, sequences - 1)), sequences - 1);
  }
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t key = random.next();
    const std::uint64_t sequence = random.below(sequences);
    const std::uint64_t value = value_of(key, sequence);
    ASSERT_TRUE(is_value_of(value, key));
    ASSERT_EQ(sequence_of(value), sequence);
  }
  EXPECT_EQ(value_of(7, sequences + 5), value_of(7, 5));
}

TEST(keys, a_value_of_another_key_is_recognised_as_such) {
  random_source random(3);
  int mistaken = 0;
  for (int i = 0; i < 1'000'000; ++i) mistaken += is_value_of(value_of(random.next(), 1), random.next()) ? 1 : 0;
  EXPECT_LE(mistaken, 2);  // one in 2^24 is expected
  for (int bit = 0; bit < 64; ++bit)
    EXPECT_FALSE(is_value_of(value_of(0x1234, 1), 0x1234 ^ (std::uint64_t{1} << bit))) << bit;
}

TEST(permutation, every_position_is_reached_once_at_every_size) {
  for (std::uint64_t size = 1; size <= 600; ++size) {
    const permutation scatter(size);
    std::vector<bool> reached(size);
    for (std::uint64_t i = 0; i < size; ++i) {
      const std::uint64_t at = scatter(i);
      ASSERT_LT(at, size);
      ASSERT_FALSE(reached[at]) << size;
      reached[at] = true;
    }
  }
  constexpr std::uint64_t large = 1'000'003;
  const permutation scatter(large);
  std::vector<bool> reached(large);
  for (std::uint64_t i = 0; i < large; ++i) {
    ASSERT_FALSE(reached[scatter(i)]);
    reached[scatter(i)] = true;
  }
}

TEST(permutation, the_largest_size_works) {
  const permutation scatter(largest);
  std::unordered_set<std::uint64_t> reached;
  for (std::uint64_t i = 0; i < 100'000; ++i) reached.insert(scatter(largest - 1 - i));
  EXPECT_EQ(reached.size(), 100'000U);
}

TEST(permutation, popular_ranks_are_scattered) {
  constexpr std::uint64_t size = 1'000'000;
  const permutation scatter(size);
  std::vector<int> tenths(10);
  for (std::uint64_t i = 0; i < 10'000; ++i) ++tenths[scatter(i) * 10 / size];
  for (const int count : tenths) EXPECT_NEAR(count, 1000, 200);
}

TEST(random_source, below_is_uniform_where_the_limit_divides_nothing) {
  random_source random(4);
  constexpr std::uint64_t limit = (std::uint64_t{1} << 63) + 1;  // a plain modulo would prefer the lower half, 2 to 1
  int low = 0;
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t drawn = random.below(limit);
    ASSERT_LT(drawn, limit);
    low += drawn < limit / 2 ? 1 : 0;
  }
  EXPECT_NEAR(low, 50'000, 800);
}

TEST(random_source, seeds_and_streams_give_different_numbers_and_repeat) {
  EXPECT_EQ(random_source(1, 2).next(), random_source(1, 2).next());
  EXPECT_NE(random_source(1, 2).next(), random_source(1, 3).next());
  EXPECT_NE(random_source(1, 2).next(), random_source(2, 2).next());
}

}  // namespace
