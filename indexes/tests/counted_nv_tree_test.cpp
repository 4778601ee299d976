// Reads, flushes, fences and device lines of an NV-Tree's operations, counted: at the floor of its design.
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/nv_tree.hpp>
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

namespace parts = indexes::detail::nv_tree;
using indexes::outcome;
using nv_tree = indexes::nv_tree<counted_medium>;

class counted_nv_tree : public counted_test<nv_tree> {};

constexpr std::uint64_t lines_of_leaf = parts::leaf_bytes<counted_medium> / media::cache_line_bytes;

TEST_F(counted_nv_tree, the_index_works_on_it) {
  contents model;
  EXPECT_EQ(run_differential(index_, model, {}), "");
}

// No counter and no bitmap: the line of the entry is all that an insert writes, wherever in the leaf it is.
TEST_F(counted_nv_tree, insert_flushes_one_line_and_fences_once) {
  for (std::uint64_t n = 0; n < nv_tree::capacity; ++n)
    EXPECT_EQ(writes_of([&](nv_tree& i) { i.insert(n * n, n); }), one) << n;
}

TEST_F(counted_nv_tree, find_reads_one_line_and_an_absent_key_none) {
  load(100'000);
  const double mean = lines_of_finds(keys_, true);
  const double mean_absent = lines_of_finds(absent_, false);
  std::printf("  NV-Tree find: %.4f lines; of an absent key: %.4f\n", mean, mean_absent);
  // One in 255 of the 43 entries of a leaf has the fingerprint: half of these are compared before the right one.
  EXPECT_LE(mean, 1.10);
  EXPECT_LE(mean_absent, 0.19);
}

// A split writes two leaves of 16 lines and the line of a link, for some 43 inserts.
TEST_F(counted_nv_tree, inserts_with_splits_write_less_than_two_lines_and_little_more_than_one_device_line) {
  load(50'000);
  std::uint64_t flushed = 0;
  std::uint64_t device_lines = 0;
  std::uint64_t fences = 0;
  std::uint64_t publications = 0;
  for (const std::uint64_t key : absent_) {
    const media::counts c = cost_of([&](nv_tree& i) { i.insert(key, 1); });
    flushed += c.lines_flushed;
    device_lines += c.device_lines_written;
    fences += c.fences;
    publications += c.publications;
  }
  const auto count = static_cast<double>(absent_.size());
  std::printf("  NV-Tree insert with splits: %.3f lines flushed, %.3f device lines, %.3f fences, %.5f publications\n",
              static_cast<double>(flushed) / count, static_cast<double>(device_lines) / count,
              static_cast<double>(fences) / count, static_cast<double>(publications) / count);
  EXPECT_LE(static_cast<double>(flushed) / count, 1.9);
  EXPECT_LE(static_cast<double>(device_lines) / count, 1.3);
  EXPECT_LE(static_cast<double>(fences) / count, 1.07);
  // A group of 63 leaves.
  EXPECT_LE(static_cast<double>(publications) / count, 1.0 / 1800);
}

TEST_F(counted_nv_tree, update_and_erase_flush_one_line_and_fence_once) {
  load(20'000);
  expect_updates_to_flush_one_line();
  // Sometimes a leaf goes: it is joined with a neighbour, and at most two others move so that their group can be freed.
  std::size_t more = 0;
  std::uint64_t flushed = 0;
  std::uint64_t fences = 0;
  for (const std::uint64_t key : keys_) {
    const media::counts c = cost_of([&](nv_tree& i) { i.erase(key); });
    ASSERT_GE(c.lines_flushed, 1U);
    ASSERT_GE(c.fences, 1U);
    if (c.publications == 0) {
      ASSERT_LE(c.lines_flushed, 1 + 3 * (lines_of_leaf + 1));
      ASSERT_LE(c.fences, 1U + 3 * 2);
    }
    more += static_cast<std::size_t>(c.lines_flushed != 1 || c.fences != 1);
    flushed += c.lines_flushed;
    fences += c.fences;
  }
  const auto count = static_cast<double>(keys_.size());
  std::printf("  NV-Tree erase until nothing is left: %.3f lines flushed, %.3f fences, %.1f %% with more than one\n",
              static_cast<double>(flushed) / count, static_cast<double>(fences) / count,
              100 * static_cast<double>(more) / count);
  EXPECT_GT(more, 0U);
  EXPECT_LT(more, keys_.size() / 20);
  EXPECT_LE(static_cast<double>(flushed) / count, 2.5);
  EXPECT_LE(static_cast<double>(fences) / count, 1.25);
  EXPECT_EQ(index_.stats().nodes, parts::regions);
}

TEST_F(counted_nv_tree, scan_reads_each_leaf_once) {
  load(100'000);
  const double lines = lines_of_scans().lines;
  std::printf("  NV-Tree scan of 100: %.1f lines\n", lines);
  EXPECT_LE(lines, 4.0 * lines_of_leaf);
}

TEST_F(counted_nv_tree, find_batch_reads_the_lines_of_the_entries) {
  load(50'000);
  expect_a_batch_to_read_the_lines_of_its_entries();
}

TEST_F(counted_nv_tree, stats_say_what_the_medium_counts) {
  const double bytes = expect_stats_to_say_what_the_medium_counts().in_all;
  std::printf("  NV-Tree: %.1f bytes for each key\n", bytes);
  EXPECT_LE(bytes, 31.0);
}

}  // namespace
}  // namespace pmlab::tests
