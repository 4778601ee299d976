// Reads, flushes and fences, counted: those that one index's design has alone.
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/indexes/fp_tree.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/nv_tree.hpp>
#include <pmlab/indexes/wb_tree.hpp>
#include <pmlab/indexes/woart.hpp>
#include <pmlab/indexes/wort.hpp>
#include <pmlab/media/counted.hpp>
#include <pmlab/media/lines.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/counted_index.hpp"
#include "support/operations.hpp"

namespace pmlab::tests {
namespace {

using counts = media::counts;
using indexes::outcome;

using fast_fair = indexes::fast_fair<counted_medium>;
using fp_tree = indexes::fp_tree<counted_medium>;
using nv_tree = indexes::nv_tree<counted_medium>;
using wb_tree = indexes::wb_tree<counted_medium>;

constexpr flushes_and_fences one{1, 1};
constexpr flushes_and_fences two{2, 2};

template <class Index>
flushes_and_fences writes_of_insert(counted_index<Index>& counted, std::uint64_t key) {
  return writes_of(counted.cost_of([&](Index& i) { i.insert(key, key); }));
}

// ---- FAST-FAIR

// The floor of FAST: one flush and one fence for each line that is shifted.
TEST(counted_fast_fair, an_insert_flushes_and_fences_each_line_that_is_shifted) {
  counted_index<fast_fair> ascending;
  counted_index<fast_fair> descending;
  for (std::uint64_t n = 0; n < indexes::detail::fast_fair::capacity; ++n) {
    EXPECT_EQ(writes_of_insert(ascending, n), one) << n;
    // n entries move: the lines of slots 0 to n.
    const std::uint64_t lines = n / indexes::detail::entries_per_line + 1;
    EXPECT_EQ(writes_of_insert(descending, 1000 - n), flushes_and_fences(lines, lines)) << n;
  }
}

TEST(counted_fast_fair, update_and_erase_flush_one_line_and_fence_once) {
  counted_index<fast_fair> counted;
  const std::vector<std::uint64_t> keys = random_keys(50'000);
  const auto insert = [](fast_fair& i, std::uint64_t key) { i.insert(key, key); };
  const auto erase = [](fast_fair& i, std::uint64_t key) { i.erase(key); };
  const shares inserts = counted.costs_of(keys, insert).unpublished();
  const shares updates =
      counted.costs_of(keys, [](fast_fair& i, std::uint64_t key) { i.update(key, ~key); }).unpublished();
  const shares rejected = counted.costs_of(keys, insert).unpublished();
  const shares absent = counted.costs_of(keys, [](fast_fair& i, std::uint64_t key) { i.erase(~key); }).unpublished();
  std::vector<std::uint64_t> every_fourth;
  for (std::size_t i = 0; i < keys.size(); i += 4) every_fourth.push_back(keys[i]);
  const shares erases = counted.costs_of(every_fourth, erase).unpublished();
  std::printf("  flushed lines/fences of FAST-FAIR inserts:%s\n  of erases:%s\n", to_string(inserts).c_str(),
              to_string(erases).c_str());
  for (const auto& [cost, share] : inserts) {
    EXPECT_EQ(cost.first, cost.second) << "a flush without a fence of its own: " << to_string(inserts);
    EXPECT_LE(cost.first, indexes::detail::fast_fair::lines_per_node) << to_string(inserts);
    EXPECT_GE(cost.first, 1U);
  }
  EXPECT_NEAR(updates.at(one), 1.0, 1e-9) << to_string(updates);
  EXPECT_NEAR(rejected.at({0, 0}), 1.0, 1e-9) << to_string(rejected);
  EXPECT_NEAR(absent.at({0, 0}), 1.0, 1e-9) << to_string(absent);
  // The remaining ones join two leaves.
  double ordinary = 0;
  for (const auto& [cost, share] : erases) ordinary += share;
  EXPECT_GE(ordinary, 0.95) << to_string(erases);
  // More than one only where the hole that another erase left spans lines.
  EXPECT_GE(erases.at(one), 0.95 * ordinary) << to_string(erases);
}

TEST(counted_fast_fair, find_reads_one_node_per_level) {
  counted_index<fast_fair> counted;
  const std::vector<std::uint64_t> keys = random_keys(100'000);
  for (const std::uint64_t key : keys) ASSERT_EQ(counted.index().insert(key, 1), outcome::inserted);
  const std::uint64_t height = counted.index().stats().depth;
  const cost_sums costs =
      counted.costs_of(keys, [](fast_fair& i, std::uint64_t key) { ASSERT_TRUE(i.find(key).has_value()); });
  // A node that starts in the middle of a device line touches one more.
  constexpr std::uint64_t node_bytes = indexes::detail::fast_fair::node_bytes;
  EXPECT_LE(costs.most().lines_read, height * (node_bytes / media::cache_line_bytes));
  EXPECT_LE(costs.most().device_lines_read, height * (node_bytes / media::xpline_bytes + 1));
}

// ---- FP-tree

// Beside the bitmap one line and one fence. Elsewhere each line that gets an entry once, a fence, and the bitmap's
// line.
TEST(counted_fp_tree, insert_flushes_each_line_once_and_fences_at_most_twice) {
  namespace parts = indexes::detail::fp_tree;
  counted_index<fp_tree> counted;
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
    EXPECT_EQ(writes_of_insert(counted, n), flushes_and_fences(lines, lines == 1 ? 1U : 2U)) << n;
  }
  EXPECT_GT(beside, parts::capacity / 2);
}

// After a restart the searches know where the leaves are, too.
TEST(counted_fp_tree, find_reads_as_little_after_recovery) {
  counted_index<fp_tree> counted;
  counted.load(50'000);
  auto again = fp_tree::open(counted.medium());
  const cost_sums costs =
      counted.costs_of(counted.present, [&](fp_tree&, std::uint64_t key) { ASSERT_TRUE(again.find(key).has_value()); });
  EXPECT_LE(costs.mean(&counts::lines_read), 1.27);
}

// ---- NV-Tree

// No counter and no bitmap: the line of the entry is all that an insert writes, wherever in the leaf it is.
TEST(counted_nv_tree, insert_flushes_one_line_and_fences_once) {
  counted_index<nv_tree> counted;
  for (std::uint64_t n = 0; n < nv_tree::capacity; ++n) EXPECT_EQ(writes_of_insert(counted, n * n), one) << n;
}

// ---- wB+-tree

namespace wb = indexes::detail::wb_tree;
constexpr std::uint64_t lines_per_node = sizeof(wb::node) / media::cache_line_bytes;

// The floor: a node, which is one device line, for each level.
TEST(counted_wb_tree, find_reads_one_device_line_per_level) {
  counted_index<wb_tree> counted;
  counted.load(100'000);
  const std::uint64_t depth = counted.index().stats().depth;
  for (const auto* some : {&counted.present, &counted.absent})
    for (const std::uint64_t key : *some) {
      const counts c = counted.cost_of([&](wb_tree& i) { static_cast<void>(i.find(key)); });
      ASSERT_EQ(c.device_lines_read, depth);
      ASSERT_EQ(c.lines_read, depth * lines_per_node);
      ASSERT_EQ(c.lines_flushed + c.fences, 0U);
    }
}

// The floor: the entry's line and the slot array's, which are one line for two of the slots.
TEST(counted_wb_tree, insert_flushes_the_entry_and_the_slot_array) {
  counted_index<wb_tree> counted;
  for (std::uint64_t n = 0; n < wb::capacity; ++n)
    EXPECT_EQ(writes_of_insert(counted, n), n < wb::slots_beside_array ? one : two) << n;
}

// At any place among the keys: one line and fence, or two; and a device line for each fence. FAST-FAIR's inserts shift.
TEST(counted_wb_tree, inserts_flush_and_fence_less_than_shifts) {
  counted_index<wb_tree> counted;
  counted_index<fast_fair> other;
  counted.load(50'000);
  other.load(50'000);
  const auto insert = [](auto& i, std::uint64_t key) { ASSERT_EQ(i.insert(key, 1), outcome::inserted); };
  cost_sums own;
  for (const std::uint64_t key : counted.absent) {
    const counts c = counted.cost_of([&](wb_tree& i) { insert(i, key); });
    if (c.publications == 0) {
      ASSERT_TRUE(writes_of(c) == one || writes_of(c) == two);
      ASSERT_EQ(c.device_lines_written, c.fences);
    }
    own.add(c);
  }
  const cost_sums shifts = other.costs_of(counted.absent, insert);
  for (const auto& [name, c] : {std::pair("wB+-tree", own), std::pair("FAST-FAIR", shifts)})
    std::printf("  %s insert: %.3f lines flushed, %.3f copied, %.3f fences, %.4f publications\n", name,
                c.mean(&counts::lines_flushed), c.mean(&counts::lines_copied), c.mean(&counts::fences),
                c.mean(&counts::publications));
  const shares ordinary = own.unpublished();
  EXPECT_GE(ordinary.at(one), 0.2 * (ordinary.at(one) + ordinary.at(two))) << to_string(ordinary);
  EXPECT_EQ(own.most().fences, 2U) << "wherever the key belongs";
  EXPECT_LE(own.mean(&counts::lines_flushed), 2.1);
  EXPECT_LE(own.mean(&counts::fences), 2.1);
  EXPECT_LT(own.mean(&counts::lines_flushed), shifts.mean(&counts::lines_flushed));
  EXPECT_LT(own.mean(&counts::fences), shifts.mean(&counts::fences));
}

// Everything is in the medium: opening reads the leftmost node of each level, whatever the size.
TEST(counted_wb_tree, open_reads_one_node_per_level) {
  for (const std::size_t count : {std::size_t{1'000}, std::size_t{100'000}}) {
    counted_index<wb_tree> counted;
    counted.load(count);
    const counts c = counted.cost_of([&](wb_tree&) { static_cast<void>(wb_tree::open(counted.medium())); });
    EXPECT_LE(c.lines_read, lines_per_node * counted.index().stats().depth);
    EXPECT_EQ(c.lines_flushed + c.fences + c.publications, 0U);
  }
}

TEST(counted_wb_tree, a_load_writes_each_leaf_once) {
  constexpr std::uint64_t count = 20'000;
  counted_index<wb_tree> counted;
  std::vector<indexes::entry> some;
  for (std::uint64_t n = 0; n < count; ++n) some.push_back({n, n});
  const counts c = counted.cost_of([&](wb_tree& i) { ASSERT_EQ(i.load(some), count); });
  EXPECT_LE(static_cast<double>(c.lines_flushed) / count, 0.6);
  EXPECT_LE(static_cast<double>(c.publications) / count, 0.03);
}

// ---- WORT and WOART

// A new node for each 16 keys; a node and three larger ones for each 256; and what releases the replaced ones.
TEST(counted_wort_and_woart, keys_in_a_row_rarely_publish) {
  counted_index<indexes::wort<counted_medium>> sixteen;
  counted_index<indexes::woart<counted_medium>> adaptive;
  constexpr std::uint64_t count = 16'384;
  std::vector<std::uint64_t> keys;
  for (std::uint64_t key = 0; key < count; ++key) keys.push_back(key);
  const auto insert = [](auto& i, std::uint64_t key) { i.insert(key, key); };
  EXPECT_LE(sixteen.costs_of(keys, insert).mean(&counts::publications), 1.0 / 16 + 1.0 / 128);
  EXPECT_LE(adaptive.costs_of(keys, insert).mean(&counts::publications), 8.0 / 256);
}

}  // namespace
}  // namespace pmlab::tests
