// Reads, flushes and fences of Level hashing's operations, counted.
#include <pmlab/indexes/level_hashing.hpp>
#include <pmlab/media/counted.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <vector>

#include <gtest/gtest.h>

#include "support/comparison.hpp"
#include "support/counted_index.hpp"
#include "support/differential.hpp"
#include "support/operations.hpp"

namespace pmlab::tests {
namespace {

using indexes::outcome;
using table = indexes::level_hashing<counted_medium>;

class counted_level_hashing : public testing::Test {
 protected:
  template <class Operation>
  media::counts cost_of(Operation&& operation) {
    return counted_.cost_of(operation);
  }

  // (flushed lines, fences) -> how often, of the operations without a publication.
  using costs = std::map<flushes_and_fences, std::uint64_t>;

  template <class Operation>
  costs measure(const std::vector<std::uint64_t>& keys, Operation&& operation) {
    costs result;
    for (const std::uint64_t key : keys) {
      const media::counts c = cost_of([&](table& t) { operation(t, key); });
      if (c.publications == 0)
        ++result[{c.lines_flushed, c.fences}];
      else
        ++publications_;
    }
    return result;
  }

  counted_index<table> counted_;
  table& table_ = counted_.index();
  std::uint64_t publications_ = 0;
};

TEST_F(counted_level_hashing, works_on_it) {
  contents model;
  EXPECT_EQ(run_differential(table_, model, {}), "");
}

// An entry beside the token word: 1/1; on the bucket's other line: 2/2. Updates, erases: 1/1. No change: 0/0.
TEST_F(counted_level_hashing, changes_flush_and_fence_once_or_twice) {
  const std::vector<std::uint64_t> keys = random_keys(300'000);
  costs inserts = measure(keys, [](table& t, std::uint64_t key) { t.insert(key, key); });
  const auto published = static_cast<double>(publications_) / static_cast<double>(keys.size());
  std::printf("  inserts: %.2f %% 1/1, %.2f %% 2/2, %.2f %% with a publication (movement, growth, first levels)\n",
              100.0 * static_cast<double>(inserts[{1, 1}]) / static_cast<double>(keys.size()),
              100.0 * static_cast<double>(inserts[{2, 2}]) / static_cast<double>(keys.size()), 100 * published);
  EXPECT_EQ(inserts.size(), 2U);
  EXPECT_EQ(inserts.count({1, 1}) + inserts.count({2, 2}), 2U);
  EXPECT_LE(published, 0.10);
  publications_ = 0;
  const costs one_and_one{{{1, 1}, keys.size()}};
  const costs none{{{0, 0}, keys.size()}};
  EXPECT_EQ(measure(keys, [](table& t, std::uint64_t key) { t.update(key, ~key); }), one_and_one);
  EXPECT_EQ(measure(keys, [](table& t, std::uint64_t key) { t.upsert(key, key); }), one_and_one);
  EXPECT_EQ(measure(keys, [](table& t, std::uint64_t key) { t.insert(key, key); }), none);
  EXPECT_EQ(measure(keys, [](table& t, std::uint64_t key) { t.erase(key); }), one_and_one);
  EXPECT_EQ(measure(keys, [](table& t, std::uint64_t key) { t.erase(key); }), none);
  EXPECT_EQ(publications_, 0U);
}

// Four buckets at most, each of them half a device line; tokens first.
TEST_F(counted_level_hashing, find_reads_at_most_four_buckets) {
  const std::vector<std::uint64_t> keys = random_keys(600'000);
  const std::size_t there = keys.size() / 2;
  for (std::size_t i = 0; i < there; ++i) ASSERT_EQ(table_.insert(keys[i], 1), outcome::inserted);
  for (const bool present : {true, false}) {
    std::uint64_t lines = 0;
    std::uint64_t device_lines = 0;
    for (std::size_t i = 0; i < there; ++i) {
      bool found = false;
      const std::uint64_t key = keys[present ? i : there + i];
      const media::counts c = cost_of([&](table& t) { found = t.find(key).has_value(); });
      ASSERT_EQ(found, present);
      ASSERT_EQ(c.lines_flushed + c.fences, 0U);
      ASSERT_LE(c.device_lines_read, 4U);
      ASSERT_LE(c.lines_read, 8U);
      lines += c.lines_read;
      device_lines += c.device_lines_read;
    }
    const auto count = static_cast<double>(there);
    std::printf("  Level hashing find of %s keys: %.3f lines, %.3f device lines\n", present ? "present" : "absent",
                static_cast<double>(lines) / count, static_cast<double>(device_lines) / count);
    EXPECT_LE(static_cast<double>(lines) / count, present ? 3.6 : 4.1);
    EXPECT_LE(static_cast<double>(device_lines) / count, present ? 3.1 : 4.0);
  }
}

}  // namespace
}  // namespace pmlab::tests
