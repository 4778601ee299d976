// Reads, flushes and fences of a wB+-tree's operations, counted: at the floor of its design, and beside FAST-FAIR.
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/wb_tree.hpp>
#include <pmlab/media/counted.hpp>
#include <pmlab/media/lines.hpp>

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

namespace parts = indexes::detail::wb_tree;
using indexes::entry;
using indexes::outcome;
using wb_tree = indexes::wb_tree<counted_medium>;
using fast_fair = indexes::fast_fair<counted_medium>;

constexpr std::uint64_t lines_per_node = sizeof(parts::node) / media::cache_line_bytes;

class counted_wb_tree : public counted_test<wb_tree> {};

TEST_F(counted_wb_tree, the_index_works_on_it) {
  contents model;
  EXPECT_EQ(run_differential(index_, model, {}), "");
}

// The floor: a node, which is one device line, for each level.
TEST_F(counted_wb_tree, find_reads_one_device_line_per_level) {
  load(100'000);
  const std::uint64_t depth = index_.stats().depth;
  for (const auto* some : {&keys_, &absent_})
    for (const std::uint64_t key : *some) {
      const media::counts c = cost_of([&](wb_tree& i) { static_cast<void>(i.find(key)); });
      ASSERT_EQ(c.device_lines_read, depth);
      ASSERT_EQ(c.lines_read, depth * lines_per_node);
      ASSERT_EQ(c.lines_flushed + c.fences, 0U);
    }
  std::printf("  wB+-tree find in %llu levels: %llu lines, %llu device lines\n", static_cast<unsigned long long>(depth),
              static_cast<unsigned long long>(depth * lines_per_node), static_cast<unsigned long long>(depth));
}

// The floor: the entry's line and the slot array's, which are one line for two of the slots.
TEST_F(counted_wb_tree, insert_flushes_the_entry_and_the_slot_array) {
  for (std::uint64_t n = 0; n < parts::capacity; ++n)
    EXPECT_EQ(writes_of([&](wb_tree& i) { i.insert(n, n); }), n < parts::slots_beside_array ? one : two) << n;
}

// At any place among the keys, and of a node's line alone.
TEST_F(counted_wb_tree, an_insert_without_a_split_writes_one_device_line_for_each_fence) {
  load(50'000);
  std::uint64_t beside = 0;
  std::uint64_t others = 0;
  for (const std::uint64_t key : absent_) {
    const media::counts c = cost_of([&](wb_tree& i) { ASSERT_EQ(i.insert(key, 1), outcome::inserted); });
    if (c.publications != 0) continue;
    const flushes_and_fences writes{c.lines_flushed, c.fences};
    ASSERT_TRUE(writes == one || writes == two);
    ASSERT_EQ(c.device_lines_written, c.fences);
    (writes == one ? beside : others) += 1;
  }
  const double share = static_cast<double>(beside) / static_cast<double>(beside + others);
  std::printf("  wB+-tree insert without a split: one line and fence for %.1f %%, else two\n", 100 * share);
  EXPECT_GE(share, 0.2);
}

TEST_F(counted_wb_tree, inserts_flush_and_fence_less_than_shifts) {
  load(50'000);
  counted_index<fast_fair> other;
  for (const std::uint64_t key : keys_) ASSERT_EQ(other.index().insert(key, 1), outcome::inserted);
  media::counts own{};
  media::counts shifts{};
  const auto add = [](media::counts& sum, const media::counts& c) {
    sum.lines_flushed += c.lines_flushed;
    sum.lines_copied += c.lines_copied;
    sum.fences += c.fences;
    sum.publications += c.publications;
  };
  std::uint64_t most = 0;
  for (const std::uint64_t key : absent_) {
    const media::counts c = cost_of([&](wb_tree& i) { ASSERT_EQ(i.insert(key, 1), outcome::inserted); });
    most = std::max(most, c.publications == 0 ? c.fences : 0);
    add(own, c);
    add(shifts, other.cost_of([&](fast_fair& i) { ASSERT_EQ(i.insert(key, 1), outcome::inserted); }));
  }
  const auto each = [&](std::uint64_t n) { return static_cast<double>(n) / static_cast<double>(absent_.size()); };
  for (const auto& [name, c] : {std::pair("wB+-tree", own), std::pair("FAST-FAIR", shifts)})
    std::printf("  %s insert: %.3f lines flushed, %.3f copied, %.3f fences, %.4f publications\n", name,
                each(c.lines_flushed), each(c.lines_copied), each(c.fences), each(c.publications));
  EXPECT_EQ(most, 2U) << "wherever the key belongs";
  EXPECT_LE(each(own.lines_flushed), 2.1);
  EXPECT_LE(each(own.fences), 2.1);
  EXPECT_LT(own.lines_flushed, shifts.lines_flushed);
  EXPECT_LT(own.fences, shifts.fences);
}

TEST_F(counted_wb_tree, update_and_erase_flush_one_line_and_fence_once) {
  load(20'000);
  expect_updates_to_flush_one_line();
  // Some join two nodes, and release the one that is empty.
  std::uint64_t joins = 0;
  std::uint64_t flushed = 0;
  std::uint64_t fences = 0;
  for (const std::uint64_t key : keys_) {
    const media::counts c = cost_of([&](wb_tree& i) { ASSERT_EQ(i.erase(key), outcome::erased); });
    if (c.publications == 0) {
      ASSERT_EQ(flushes_and_fences(c.lines_flushed, c.fences), one);
    }
    joins += c.publications != 0 ? 1 : 0;
    flushed += c.lines_flushed;
    fences += c.fences;
  }
  const auto count = static_cast<double>(keys_.size());
  std::printf("  wB+-tree erase until nothing is left: %.3f lines flushed, %.3f fences, %.1f %% with a join\n",
              static_cast<double>(flushed) / count, static_cast<double>(fences) / count,
              100 * static_cast<double>(joins) / count);
  EXPECT_LE(static_cast<double>(flushed) / count, 1.8);
  EXPECT_LE(static_cast<double>(joins) / count, 0.25);
  EXPECT_EQ(index_.stats().nodes, 1U);
}

TEST_F(counted_wb_tree, scan_reads_each_leaf_once) {
  load(100'000);
  const double in_leaf = index_.stats().load_factor * static_cast<double>(parts::capacity);
  const auto depth = static_cast<double>(index_.stats().depth);
  const double each = lines_of_scans().device_lines;
  std::printf("  wB+-tree scan of 100: %.1f device lines\n", each);
  // The inner nodes, the leaves, the rest of the first and of the last one, and the sibling that is prefetched.
  EXPECT_LE(each, depth - 1 + 100 / in_leaf + 3);
}

// Everything is in the medium: opening reads the leftmost node of each level, whatever the size.
TEST_F(counted_wb_tree, open_reads_one_node_per_level) {
  for (const std::size_t count : {std::size_t{1'000}, std::size_t{100'000}}) {
    counted_index<wb_tree> counted;
    for (const std::uint64_t key : random_keys(count)) ASSERT_EQ(counted.index().insert(key, 1), outcome::inserted);
    const media::counts c = counted.cost_of([&](wb_tree&) { static_cast<void>(wb_tree::open(counted.medium())); });
    EXPECT_LE(c.lines_read, lines_per_node * counted.index().stats().depth);
    EXPECT_EQ(c.lines_flushed + c.fences + c.publications, 0U);
  }
}

TEST_F(counted_wb_tree, a_load_writes_each_leaf_once) {
  constexpr std::uint64_t count = 20'000;
  std::vector<entry> some;
  for (std::uint64_t n = 0; n < count; ++n) some.push_back({n, n});
  const media::counts c = cost_of([&](wb_tree& i) { ASSERT_EQ(i.load(some), count); });
  std::printf("  wB+-tree load: %.3f lines flushed, %.3f fences, %.4f publications for each entry\n",
              static_cast<double>(c.lines_flushed) / count, static_cast<double>(c.fences) / count,
              static_cast<double>(c.publications) / count);
  EXPECT_LE(static_cast<double>(c.lines_flushed) / count, 0.6);
  EXPECT_LE(static_cast<double>(c.publications) / count, 0.03);
}

TEST_F(counted_wb_tree, stats_say_what_the_medium_counts) {
  const double bytes = expect_stats_to_say_what_the_medium_counts().in_medium;
  std::printf("  wB+-tree: %.1f bytes for each key\n", bytes);
  EXPECT_LE(bytes, 31.0);
}

}  // namespace
}  // namespace pmlab::tests
