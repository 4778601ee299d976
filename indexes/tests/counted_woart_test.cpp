// Reads, flushes and fences of the radix trees' operations, counted: at the floor of their design.
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/woart.hpp>
#include <pmlab/indexes/wort.hpp>
#include <pmlab/media/counted.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/comparison.hpp"
#include "support/counted_index.hpp"
#include "support/differential.hpp"
#include "support/operations.hpp"

namespace pmlab::tests {
namespace {

using indexes::outcome;
using wort = indexes::wort<counted_medium>;
using woart = indexes::woart<counted_medium>;

template <class Index>
class counted_radix : public testing::Test {
 protected:
  static constexpr bool is_adaptive = std::is_same_v<Index, woart>;

  counted_index<Index> counted_;
};

using trees = testing::Types<wort, woart>;
struct tree_name {
  template <class Index>
  static std::string GetName(int /*position*/) {
    return std::string(Index::layout_name);
  }
};
TYPED_TEST_SUITE(counted_radix, trees, tree_name);

TYPED_TEST(counted_radix, the_index_works_on_it) {
  contents model;
  EXPECT_EQ(run_differential(this->counted_.index(), model, {}), "");
}

// An entry is in its slot: one line. In a WOART's node of 47 the index is another one, under the same fence.
TYPED_TEST(counted_radix, changes_flush_one_line_and_fence_once) {
  const std::vector<std::uint64_t> keys = random_keys(100'000);
  const auto [inserts, updates, upserts, rejected, erases, absent] = measure_changes(this->counted_, keys);
  std::printf("  flushed lines/fences of inserts:%s\n  of erases:%s\n", to_string(inserts).c_str(),
              to_string(erases).c_str());
  for (const auto& [cost, share] : inserts) {
    EXPECT_EQ(cost.second, 1U) << to_string(inserts);
    EXPECT_LE(cost.first, this->is_adaptive ? 2U : 1U) << to_string(inserts);
  }
  for (const auto& [cost, share] : erases) EXPECT_EQ(cost, flushes_and_fences(1, 1)) << to_string(erases);
  EXPECT_NEAR(updates.at({1, 1}), 1.0, 1e-9) << to_string(updates);
  EXPECT_NEAR(upserts.at({1, 1}), 1.0, 1e-9) << to_string(upserts);
  EXPECT_NEAR(rejected.at({0, 0}), 1.0, 1e-9) << to_string(rejected);
  EXPECT_NEAR(absent.at({0, 0}), 1.0, 1e-9) << to_string(absent);
}

TEST(counted_wort_and_woart, keys_in_a_row_rarely_publish) {
  counted_index<wort> sixteen;
  counted_index<woart> adaptive;
  std::uint64_t published_by_wort = 0;
  std::uint64_t published_by_woart = 0;
  constexpr std::uint64_t count = 16'384;
  for (std::uint64_t key = 0; key < count; ++key) {
    published_by_wort += sixteen.cost_of([&](wort& i) { i.insert(key, key); }).publications;
    published_by_woart += adaptive.cost_of([&](woart& i) { i.insert(key, key); }).publications;
  }
  // A new node for each 16 keys; a node and three larger ones for each 256; and what releases the replaced ones.
  EXPECT_LE(published_by_wort, count / 16 + count / 128);
  EXPECT_LE(published_by_woart, 8 * count / 256);
}

// One line for each node with a slot for each digit; fewer nodes than digits, as the lower ones are not there.
TYPED_TEST(counted_radix, find_reads_few_lines) {
  const std::vector<std::uint64_t> keys = random_keys(200'000);
  const std::size_t there = keys.size() / 2;
  for (std::size_t i = 0; i < there; ++i) ASSERT_EQ(this->counted_.index().insert(keys[i], 1), outcome::inserted);
  for (const bool present : {true, false}) {
    std::uint64_t lines = 0;
    for (std::size_t i = 0; i < there; ++i) {
      const std::uint64_t key = keys[present ? i : there + i];
      const media::counts c =
          this->counted_.cost_of([&](TypeParam& index) { ASSERT_EQ(index.find(key).has_value(), present); });
      ASSERT_EQ(c.lines_flushed + c.fences, 0U);
      lines += c.lines_read;
    }
    const double each = static_cast<double>(lines) / static_cast<double>(there);
    std::printf("  find of %s keys: %.3f lines\n", present ? "present" : "absent", each);
    EXPECT_LE(each, this->is_adaptive ? 3.6 : 5.2);
  }
}

TYPED_TEST(counted_radix, stats_say_what_the_medium_counts) {
  const auto agrees = [&] {
    return this->counted_.index().stats().medium_bytes == this->counted_.medium().used().allocated_bytes;
  };
  EXPECT_TRUE(agrees());
  const std::vector<std::uint64_t> keys = random_keys(20'000);
  for (const std::uint64_t key : keys) this->counted_.index().insert(key, key);
  EXPECT_TRUE(agrees());
  const auto stats = this->counted_.index().stats();
  std::printf("  %.1f bytes for each key\n",
              static_cast<double>(stats.medium_bytes) / static_cast<double>(stats.entries));
  for (std::size_t i = 0; i < keys.size(); i += 2) this->counted_.index().erase(keys[i]);
  EXPECT_TRUE(agrees());
}

}  // namespace
}  // namespace pmlab::tests
