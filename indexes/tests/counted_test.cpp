// Reads, flushes and fences of operations, counted: at the floor of each index's design, on any machine.
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/counted.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include <gtest/gtest.h>

#include "support/comparison.hpp"
#include "support/counted_index.hpp"
#include "support/differential.hpp"
#include "support/operations.hpp"

namespace pmlab::tests {
namespace {

using indexes::outcome;

using cceh = indexes::cceh<counted_medium>;
using fast_fair = indexes::fast_fair<counted_medium>;

// The wrapper changes nothing about the index.
TEST(counted, indexes_work_on_it) {
  counted_index<cceh> hash;
  counted_index<fast_fair> tree;
  contents first;
  contents second;
  EXPECT_EQ(run_differential(hash.index(), first, {}), "");
  EXPECT_EQ(run_differential(tree.index(), second, {}), "");
}

TEST(counted, cceh_changes_flush_one_line_and_fence_once) {
  counted_index<cceh> counted;
  const std::vector<std::uint64_t> keys = random_keys(100'000);
  const auto [inserts, updates, upserts, rejected, erases, absent] = measure_changes(counted, keys);
  std::printf("  flushed lines/fences of CCEH inserts:%s\n", to_string(inserts).c_str());
  // The remaining ones split a segment.
  EXPECT_EQ(inserts.size(), 1U) << to_string(inserts);
  EXPECT_GE(inserts.at({1, 1}), 0.998) << to_string(inserts);
  EXPECT_NEAR(updates.at({1, 1}), 1.0, 1e-9) << to_string(updates);
  EXPECT_NEAR(upserts.at({1, 1}), 1.0, 1e-9) << to_string(upserts);
  EXPECT_NEAR(erases.at({1, 1}), 1.0, 1e-9) << to_string(erases);
  EXPECT_NEAR(rejected.at({0, 0}), 1.0, 1e-9) << to_string(rejected);
  EXPECT_NEAR(absent.at({0, 0}), 1.0, 1e-9) << to_string(absent);
}

// On the mean over a big table, and with the share of those that need more, for present and absent keys.
TEST(counted, cceh_find_reads_one_device_line) {
  counted_index<cceh> counted;
  const std::vector<std::uint64_t> keys = random_keys(300'000);
  const std::size_t there = keys.size() / 2;
  for (std::size_t i = 0; i < there; ++i) ASSERT_EQ(counted.index().insert(keys[i], 1), outcome::inserted);
  for (const bool present : {true, false}) {
    double lines = 0;
    double device_lines = 0;
    double above_one = 0;
    for (std::size_t i = 0; i < there; ++i) {
      const std::uint64_t key = keys[present ? i : there + i];
      bool found = false;
      const media::counts c = counted.cost_of([&](cceh& index) { found = index.find(key).has_value(); });
      ASSERT_EQ(found, present);
      ASSERT_EQ(c.lines_flushed + c.fences, 0U);
      ASSERT_GE(c.lines_read, 1U);
      ASSERT_LE(c.device_lines_read, 4U);
      lines += static_cast<double>(c.lines_read);
      device_lines += static_cast<double>(c.device_lines_read);
      above_one += c.device_lines_read > 1;
    }
    const auto count = static_cast<double>(there);
    std::printf("  CCEH find of %s keys: %.4f lines, %.4f device lines; %.3f %% read more than one device line\n",
                present ? "present" : "absent", lines / count, device_lines / count, 100 * above_one / count);
    EXPECT_LE(device_lines / count, present ? 1.03 : 1.06);
    EXPECT_LE(above_one / count, present ? 0.03 : 0.06);
  }
}

// The floor of FAST: one flush and one fence for each line that is shifted.
TEST(counted, fast_fair_insert_flushes_and_fences_each_line_that_is_shifted) {
  constexpr std::uint64_t in_leaf = indexes::detail::fast_fair::capacity;
  constexpr std::uint64_t in_line = indexes::detail::entries_per_line;
  counted_index<fast_fair> ascending;
  counted_index<fast_fair> descending;
  for (std::uint64_t n = 0; n < in_leaf; ++n) {
    const media::counts at_the_end = ascending.cost_of([&](fast_fair& i) { i.insert(n, n); });
    EXPECT_EQ(flushes_and_fences(at_the_end.lines_flushed, at_the_end.fences), flushes_and_fences(1, 1)) << n;
    // n entries move: the lines of slots 0 to n.
    const media::counts at_the_front = descending.cost_of([&](fast_fair& i) { i.insert(1000 - n, n); });
    const std::uint64_t lines = n / in_line + 1;
    EXPECT_EQ(flushes_and_fences(at_the_front.lines_flushed, at_the_front.fences), flushes_and_fences(lines, lines))
        << n;
  }
}

// A node that a split made has a hole before each entry, and an insert shifts to the hole with the fewest lines
// between.
TEST(counted, fast_fair_insert_of_random_keys_flushes_few_lines) {
  counted_index<fast_fair> counted;
  const std::vector<std::uint64_t> keys = random_keys(50'000);
  std::uint64_t lines = 0;
  for (const std::uint64_t key : keys)
    lines += counted.cost_of([&](fast_fair& i) { ASSERT_EQ(i.insert(key, key), outcome::inserted); }).lines_flushed;
  const double each = static_cast<double>(lines) / static_cast<double>(keys.size());
  std::printf("  FAST-FAIR insert of a random key: %.3f flushed lines, splits among them\n", each);
  // Without holes: 3.9. With holes, but shifts to the right one of them wherever it is: 3.0.
  EXPECT_LE(each, 2.8);
}

TEST(counted, fast_fair_update_and_erase_flush_one_line_and_fence_once) {
  counted_index<fast_fair> counted;
  const std::vector<std::uint64_t> keys = random_keys(50'000);
  const shares inserts = measure(counted, keys, [](fast_fair& i, std::uint64_t key) { i.insert(key, key); });
  const shares updates = measure(counted, keys, [](fast_fair& i, std::uint64_t key) { i.update(key, ~key); });
  const shares rejected = measure(counted, keys, [](fast_fair& i, std::uint64_t key) { i.insert(key, key); });
  const shares absent = measure(counted, keys, [](fast_fair& i, std::uint64_t key) { i.erase(~key); });
  std::vector<std::uint64_t> every_fourth;
  for (std::size_t i = 0; i < keys.size(); i += 4) every_fourth.push_back(keys[i]);
  const shares erases = measure(counted, every_fourth, [](fast_fair& i, std::uint64_t key) { i.erase(key); });
  std::printf("  flushed lines/fences of FAST-FAIR inserts:%s\n", to_string(inserts).c_str());
  std::printf("  flushed lines/fences of FAST-FAIR erases:%s\n", to_string(erases).c_str());
  for (const auto& [cost, share] : inserts) {
    EXPECT_EQ(cost.first, cost.second) << "a flush without a fence of its own: " << to_string(inserts);
    EXPECT_LE(cost.first, indexes::detail::fast_fair::lines_per_node) << to_string(inserts);
    EXPECT_GE(cost.first, 1U);
  }
  EXPECT_NEAR(updates.at({1, 1}), 1.0, 1e-9) << to_string(updates);
  EXPECT_NEAR(rejected.at({0, 0}), 1.0, 1e-9) << to_string(rejected);
  EXPECT_NEAR(absent.at({0, 0}), 1.0, 1e-9) << to_string(absent);
  // The remaining ones join two leaves.
  double ordinary = 0;
  for (const auto& [cost, share] : erases) ordinary += share;
  EXPECT_GE(ordinary, 0.95) << to_string(erases);
  // More than one only where the hole that another erase left spans lines.
  EXPECT_GE(erases.at({1, 1}), 0.95 * ordinary) << to_string(erases);
}

TEST(counted, fast_fair_find_reads_one_node_per_level) {
  counted_index<fast_fair> counted;
  const std::vector<std::uint64_t> keys = random_keys(100'000);
  for (const std::uint64_t key : keys) ASSERT_EQ(counted.index().insert(key, 1), outcome::inserted);
  const std::uint64_t height = counted.index().stats().depth;
  constexpr std::uint64_t lines_per_node = indexes::detail::fast_fair::node_bytes / media::cache_line_bytes;
  constexpr std::uint64_t device_lines_per_node = indexes::detail::fast_fair::node_bytes / media::xpline_bytes;
  std::uint64_t most_lines = 0;
  std::uint64_t most_device_lines = 0;
  for (const std::uint64_t key : keys) {
    const media::counts c = counted.cost_of([&](fast_fair& i) { ASSERT_TRUE(i.find(key).has_value()); });
    most_lines = std::max(most_lines, c.lines_read);
    most_device_lines = std::max(most_device_lines, c.device_lines_read);
  }
  std::printf("  FAST-FAIR find in %llu levels: at most %llu lines, %llu device lines\n",
              static_cast<unsigned long long>(height), static_cast<unsigned long long>(most_lines),
              static_cast<unsigned long long>(most_device_lines));
  // A node that starts in the middle of a device line touches one more.
  EXPECT_LE(most_lines, height * lines_per_node);
  EXPECT_LE(most_device_lines, height * (device_lines_per_node + 1));
}

}  // namespace
}  // namespace pmlab::tests
