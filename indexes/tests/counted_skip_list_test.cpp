// Reads, flushes and fences of the skip lists' operations, counted: at the floor of the design.
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/skip_list.hpp>
#include <pmlab/media/counted.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/counted_index.hpp"
#include "support/operations.hpp"

namespace pmlab::tests {
namespace {

using indexes::outcome;
template <class Index>
class counted_skip_list : public testing::Test {
 protected:
  counted_index<Index> counted_;
};

using in_dram_towers = indexes::skip_list<counted_medium>;
using lists = testing::Types<in_dram_towers, indexes::skip_list_pm<counted_medium>>;
TYPED_TEST_SUITE(counted_skip_list, lists);

TYPED_TEST(counted_skip_list, changes_flush_and_fence_at_the_floor) {
  constexpr bool in_dram = std::is_same_v<TypeParam, in_dram_towers>;
  const std::vector<std::uint64_t> keys = random_keys(100'000);
  const auto [inserts, updates, upserts, rejected, erases, absent] = measure_changes(this->counted_, keys);
  std::printf("  inserts:%s\n  erases:%s\n", to_string(inserts).c_str(), to_string(erases).c_str());
  // A tower in the medium costs two more of each for each of its tower nodes: for three entries in four there is none.
  EXPECT_GE(inserts.at({2, 2}), in_dram ? 0.999 : 0.74) << to_string(inserts);
  EXPECT_NEAR(updates.at({1, 1}), 1.0, 1e-9) << to_string(updates);
  EXPECT_NEAR(upserts.at({1, 1}), 1.0, 1e-9) << to_string(upserts);
  EXPECT_NEAR(rejected.at({0, 0}), 1.0, 1e-9) << to_string(rejected);
  // The others make the snipping of some before them durable.
  EXPECT_GE(erases.at({1, 1}), in_dram ? 0.98 : 0.73) << to_string(erases);
  EXPECT_NEAR(absent.at({0, 0}), 1.0, 1e-9) << to_string(absent);
}

TYPED_TEST(counted_skip_list, a_find_flushes_nothing_and_with_towers_in_dram_reads_one_line) {
  constexpr bool in_dram = std::is_same_v<TypeParam, in_dram_towers>;
  auto& index = this->counted_.index();
  const std::vector<std::uint64_t> keys = random_keys(100'000);
  const std::size_t there = keys.size() / 2;
  for (std::size_t i = 0; i < there; ++i) ASSERT_EQ(index.insert(keys[i], 1), outcome::inserted);
  for (const bool present : {true, false}) {
    double lines = 0;
    for (std::size_t i = 0; i < there; ++i) {
      const std::uint64_t key = keys[present ? i : there + i];
      bool found = false;
      const media::counts c = this->counted_.cost_of([&](TypeParam&) { found = index.find(key).has_value(); });
      ASSERT_EQ(found, present);
      ASSERT_EQ(c.lines_flushed + c.fences, 0U);
      lines += static_cast<double>(c.lines_read) / static_cast<double>(there);
      if (in_dram) {
        ASSERT_LE(c.lines_read, present ? 1U : 2U);
      }
    }
    std::printf("  find of %s keys: %.3f lines\n", present ? "present" : "absent", lines);
  }
}

}  // namespace
}  // namespace pmlab::tests
