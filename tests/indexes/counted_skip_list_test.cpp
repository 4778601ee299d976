// What operations of the skip lists read, flush and fence, counted: at the floor of the design.
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/skip_list.hpp>
#include <pmlab/media/counted.hpp>
#include <pmlab/media/dram.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/operations.hpp"

namespace pmlab::tests {
namespace {

using indexes::outcome;
using medium = media::counted<media::dram>;

template <class Index>
class counted_skip_list : public testing::Test {
 protected:
  using cost = std::pair<std::uint64_t, std::uint64_t>;  // flushed lines, fences
  using shares = std::map<cost, double>;

  static std::vector<std::uint64_t> random_keys(std::size_t count) {
    random source(1);
    return make_keys(key_set::anywhere, count, source);
  }

  template <class Operation>
  media::counts cost_of(Operation&& operation) {
    medium_.reset();
    medium_.begin_operation();
    operation();
    medium_.end_operation();
    return medium_.total();
  }

  // How often each cost came, among the operations that took no slab.
  template <class Operation>
  shares measure(const std::vector<std::uint64_t>& keys, Operation&& operation) {
    shares result;
    for (const std::uint64_t key : keys) {
      const media::counts c = cost_of([&] { operation(key); });
      if (c.publications == 0) result[{c.lines_flushed, c.fences}] += 1.0 / static_cast<double>(keys.size());
    }
    return result;
  }

  static std::string to_string(const shares& all) {
    std::string text;
    for (const auto& [cost, share] : all)
      text += " " + std::to_string(cost.first) + "/" + std::to_string(cost.second) + ": " +
              std::to_string(100 * share).substr(0, 6) + " %";
    return text;
  }

  medium medium_;
  Index index_ = Index::open(medium_);
};

using lists = testing::Types<indexes::skip_list<medium>, indexes::skip_list_pm<medium>>;
TYPED_TEST_SUITE(counted_skip_list, lists);

TYPED_TEST(counted_skip_list, changes_flush_and_fence_at_the_floor) {
  constexpr bool in_dram = std::is_same_v<TypeParam, indexes::skip_list<medium>>;
  auto& index = this->index_;
  const std::vector<std::uint64_t> keys = this->random_keys(100'000);
  const auto inserts = this->measure(keys, [&](std::uint64_t key) { index.insert(key, key); });
  const auto updates = this->measure(keys, [&](std::uint64_t key) { index.update(key, ~key); });
  const auto upserts = this->measure(keys, [&](std::uint64_t key) { index.upsert(key, key); });
  const auto rejected = this->measure(keys, [&](std::uint64_t key) { index.insert(key, key); });
  const auto erases = this->measure(keys, [&](std::uint64_t key) { index.erase(key); });
  const auto absent = this->measure(keys, [&](std::uint64_t key) { index.erase(key); });
  std::printf("  inserts:%s\n  erases:%s\n", this->to_string(inserts).c_str(), this->to_string(erases).c_str());
  // A tower in the medium costs two more of each for each of its stones: for three entries in four there is none.
  EXPECT_GE(inserts.at({2, 2}), in_dram ? 0.999 : 0.74) << this->to_string(inserts);
  EXPECT_NEAR(updates.at({1, 1}), 1.0, 1e-9) << this->to_string(updates);
  EXPECT_NEAR(upserts.at({1, 1}), 1.0, 1e-9) << this->to_string(upserts);
  EXPECT_NEAR(rejected.at({0, 0}), 1.0, 1e-9) << this->to_string(rejected);
  // The others make the snipping of some before them durable.
  EXPECT_GE(erases.at({1, 1}), in_dram ? 0.98 : 0.73) << this->to_string(erases);
  EXPECT_NEAR(absent.at({0, 0}), 1.0, 1e-9) << this->to_string(absent);
}

TYPED_TEST(counted_skip_list, a_find_flushes_nothing_and_with_towers_in_dram_reads_one_line) {
  constexpr bool in_dram = std::is_same_v<TypeParam, indexes::skip_list<medium>>;
  auto& index = this->index_;
  const std::vector<std::uint64_t> keys = this->random_keys(100'000);
  const std::size_t there = keys.size() / 2;
  for (std::size_t i = 0; i < there; ++i) ASSERT_EQ(index.insert(keys[i], 1), outcome::inserted);
  for (const bool present : {true, false}) {
    double lines = 0;
    for (std::size_t i = 0; i < there; ++i) {
      const std::uint64_t key = keys[present ? i : there + i];
      bool found = false;
      const media::counts c = this->cost_of([&] { found = index.find(key).has_value(); });
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
