// Reads, flushes and fences of an FP-tree's operations, counted: at the floor of its design.
#include <pmlab/indexes/fp_tree.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/counted.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>

#include <gtest/gtest.h>

#include "support/comparison.hpp"
#include "support/counted_index.hpp"
#include "support/differential.hpp"
#include "support/operations.hpp"

namespace pmlab::tests {
namespace {

using indexes::outcome;
using fp_tree = indexes::fp_tree<counted_medium>;

class counted_fp_tree : public counted_test<fp_tree> {};

TEST_F(counted_fp_tree, the_index_works_on_it) {
  contents model;
  EXPECT_EQ(run_differential(index_, model, {}), "");
}

TEST_F(counted_fp_tree, find_mostly_reads_one_line) {
  load(100'000);
  const double mean = lines_of_finds(keys_, true);
  const double mean_absent = lines_of_finds(absent_, false);
  std::printf("  FP-tree find: %.4f lines; of an absent key: %.4f\n", mean, mean_absent);
  // Four entries of five are in their home line. Keys with the same fingerprint have the same home line, so that a
  // wrong one costs another line only where it is not at home.
  EXPECT_LE(mean, 1.25);
  EXPECT_LE(mean_absent, 1.05);
}

// Beside the bitmap one line and one fence. Elsewhere each line that gets an entry once, a fence, and the bitmap's
// line.
TEST_F(counted_fp_tree, insert_flushes_each_line_once_and_fences_at_most_twice) {
  namespace parts = indexes::detail::fp_tree;
  parts::leaf only{};  // the tree's only leaf, as it should be
  parts::slot_set used = 0;
  std::uint64_t beside = 0;
  for (std::uint64_t n = 0; n < parts::capacity; ++n) {
    const parts::insert_plan plan = parts::plan_insert(only, n, parts::all_slots & ~used);
    only.slots[plan.slot].key = n;
    indexes::detail::for_each_slot(
        plan.moves, [&](std::size_t from) { only.slots[plan.to[from]].key = only.slots[from].key.load(); });
    used = (used | plan.stored) & ~plan.moves;
    std::uint64_t lines = 1;
    for (std::size_t line = 1; line < parts::lines_per_leaf; ++line)
      lines += static_cast<std::uint64_t>((plan.stored & parts::slots_of_line(line)) != 0);
    beside += static_cast<std::uint64_t>(lines == 1);
    const flushes_and_fences expected{lines, lines == 1 ? 1U : 2U};
    EXPECT_EQ(writes_of([&](fp_tree& i) { i.insert(n, n); }), expected) << n;
  }
  EXPECT_GT(beside, parts::capacity / 2);
}

TEST_F(counted_fp_tree, insert_fences_less_than_one_and_a_half_times) {
  load(50'000);
  std::uint64_t flushed = 0;
  std::uint64_t fences = 0;
  std::uint64_t publications = 0;
  for (const std::uint64_t key : absent_) {
    const media::counts c = cost_of([&](fp_tree& i) { i.insert(key, 1); });
    flushed += c.lines_flushed;
    fences += c.fences;
    publications += c.publications;
  }
  const auto count = static_cast<double>(absent_.size());
  std::printf("  FP-tree insert with splits: %.3f lines flushed, %.3f fences, %.5f publications\n",
              static_cast<double>(flushed) / count, static_cast<double>(fences) / count,
              static_cast<double>(publications) / count);
  EXPECT_LE(static_cast<double>(flushed) / count, 2.15);
  EXPECT_LE(static_cast<double>(fences) / count, 1.5);
  // A group of 56 leaves.
  EXPECT_LE(static_cast<double>(publications) / count, 1.0 / 800);
}

TEST_F(counted_fp_tree, update_and_erase_flush_one_line_and_fence_once) {
  load(20'000);
  expect_updates_to_flush_one_line();
  // Sometimes a leaf is removed: it is joined with a neighbour, and at most two others move so that their group can be
  // freed.
  std::size_t more = 0;
  std::uint64_t flushed = 0;
  std::uint64_t fences = 0;
  for (const std::uint64_t key : keys_) {
    const media::counts c = cost_of([&](fp_tree& i) { i.erase(key); });
    ASSERT_GE(c.lines_flushed, 1U);
    ASSERT_GE(c.fences, 1U);
    constexpr std::uint64_t most_lines = 1 + 3 * (indexes::detail::fp_tree::lines_per_leaf + 2);
    if (c.publications == 0) {
      ASSERT_LE(c.lines_flushed, most_lines);
      ASSERT_LE(c.fences, 1U + 3 * 3);
    }
    more += static_cast<std::size_t>(c.lines_flushed != 1 || c.fences != 1);
    flushed += c.lines_flushed;
    fences += c.fences;
  }
  const auto count = static_cast<double>(keys_.size());
  std::printf("  FP-tree erase until nothing is left: %.3f lines flushed, %.3f fences, %.1f %% with more than one\n",
              static_cast<double>(flushed) / count, static_cast<double>(fences) / count,
              100 * static_cast<double>(more) / count);
  EXPECT_GT(more, 0U);
  EXPECT_LT(more, keys_.size() / 10);
  EXPECT_LE(static_cast<double>(flushed) / count, 3.0);
  EXPECT_LE(static_cast<double>(fences) / count, 1.75);
  EXPECT_EQ(index_.stats().nodes, 1U);
}

TEST_F(counted_fp_tree, scan_reads_each_leaf_once) {
  load(100'000);
  const double lines = lines_of_scans().lines;
  std::printf("  FP-tree scan of 100: %.1f lines\n", lines);
  EXPECT_LE(lines, 8.0 * 8);
}

TEST_F(counted_fp_tree, find_batch_reads_the_lines_of_the_entries) {
  load(50'000);
  expect_a_batch_to_read_the_lines_of_its_entries();
}

// After a restart the searches know where the leaves are, too.
TEST_F(counted_fp_tree, find_reads_as_little_after_recovery) {
  load(50'000);
  auto again = fp_tree::open(medium_);
  std::uint64_t lines = 0;
  for (const std::uint64_t key : keys_)
    lines += cost_of([&](fp_tree&) { ASSERT_TRUE(again.find(key).has_value()); }).lines_read;
  EXPECT_LE(static_cast<double>(lines) / static_cast<double>(keys_.size()), 1.27);
}

TEST_F(counted_fp_tree, stats_say_what_the_medium_counts) {
  const double bytes = expect_stats_to_say_what_the_medium_counts().in_all;
  std::printf("  FP-tree: %.1f bytes for each key\n", bytes);
  EXPECT_LE(bytes, 32.0);
}

}  // namespace
}  // namespace pmlab::tests
