// The FP-tree's own behaviour: leaves that are freed and reused, and a recovery that rebuilds everything but the
// leaves.
#include <pmlab/indexes/fp_tree.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/sync/transactions.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/comparison.hpp"
#include "support/differential.hpp"
#include "support/leaf_tree.hpp"
#include "support/medium_under_test.hpp"
#include "support/message_of.hpp"
#include "support/operations.hpp"
#include "support/restartable_medium.hpp"
#include "support/reuse_under_reader.hpp"
#include "support/settings.hpp"

namespace pmlab::tests {
namespace {

namespace parts = indexes::detail::fp_tree;
using indexes::outcome;

template <class Setting>
class fp_tree : public leaf_tree_test<Setting, parts::capacity> {};

using fp_tree_settings =
    testing::Types<setting<kind<indexes::fp_tree>, media::dram>, setting<kind<indexes::fp_tree>, media::pmem>,
                   setting<kind<indexes::fp_tree>, restartable_medium>>;
TYPED_TEST_SUITE(fp_tree, fp_tree_settings, setting_name);

constexpr std::uint64_t leaf_of_keys = 10 * parts::capacity;

TYPED_TEST(fp_tree, P4_the_leftmost_leaf_can_be_emptied_and_filled_again) {
  auto index = TypeParam::index::open(*this->under_.medium);
  contents model;
  this->fill(index, model, 4);
  const auto nodes = index.stats().nodes;
  this->erase(index, model, 10, leaf_of_keys);
  EXPECT_EQ(index.stats().nodes, nodes);
  EXPECT_EQ(index.insert(0, 7), outcome::inserted);
  EXPECT_EQ(index.insert(20, 8), outcome::inserted);
  model[0] = 7;
  model[20] = 8;
  EXPECT_EQ(compare_all(index, model), "");
}

TYPED_TEST(fp_tree, P4_P8_leaves_emptied_from_left_right_and_middle_leave_the_tree) {
  this->expect_emptied_leaves_to_go(1);
}

// Neighbours that erasing leaves sparse are joined: entries of a leaf never fall below half of those of a load.
TYPED_TEST(fp_tree, sparse_leaves_are_joined) {
  for (const std::uint64_t stays : {2U, 5U, 20U, 31U, 100U}) {
    auto index = TypeParam::index::open(*this->under_.medium, "tree" + std::to_string(stays));
    contents model;
    this->fill(index, model, 40);
    for (std::uint64_t n = 1; n <= 40 * parts::capacity; ++n) {
      if (n % stays == 0) continue;
      ASSERT_EQ(index.erase(10 * n), outcome::erased);
      model.erase(10 * n);
    }
    EXPECT_EQ(compare_all(index, model), "");
    EXPECT_TRUE(index.check().ok());
    EXPECT_LE(index.stats().nodes, 2 * model.size() / parts::loaded_entries + 2) << "one of " << stays;
    EXPECT_EQ(run_differential(index, model, {.seed = stays, .operations = 5000, .key_count = 10'000}), "");
  }
}

// Groups are released to the medium, from any position in its list; the remaining ones are found after opening again.
TYPED_TEST(fp_tree, groups_go_back_to_the_medium) {
  random source(5);
  for (const std::uint64_t one_in : {2U, 10U, 100U}) {
    contents model;
    const std::string name = "tree" + std::to_string(one_in);
    const std::uint64_t allocated = this->under_.medium->used().allocated_bytes;
    {
      auto index = TypeParam::index::open(*this->under_.medium, name);
      const std::uint64_t before = this->fill_and_thin_out(index, model, source, 10'000, one_in);
      // A quarter more leaves than are in use, a group besides, and two that wait for readers.
      const auto stats = index.stats();
      EXPECT_LE(stats.medium_bytes,
                stats.nodes * 5 / 4 * sizeof(parts::leaf) * 21 / 20 + 4 * parts::group_bytes(false));
      EXPECT_LT(stats.medium_bytes, before);
      this->expect_sound_and_working(index, model, one_in);
    }
    const std::uint64_t held = TypeParam::index::open(*this->under_.medium, name).stats().medium_bytes;
    if constexpr (std::is_same_v<typename TypeParam::medium, restartable_medium>) {
      EXPECT_EQ(this->under_.medium->used().allocated_bytes - allocated, held);
    }
    auto index = TypeParam::index::open(*this->under_.medium, name);
    this->expect_sound_and_working(index, model, one_in);
  }
}

// A tree that was emptied has room for entries in a medium that is full by then.
TYPED_TEST(fp_tree, the_last_group_stays) {
  auto index = TypeParam::index::open(*this->under_.medium);
  constexpr std::uint64_t keys = 40 * parts::capacity;
  for (int times = 0; times < 3; ++times) {
    for (std::uint64_t n = 1; n <= keys; ++n) ASSERT_EQ(index.insert(n, ~n), outcome::inserted);
    for (std::uint64_t n = 1; n <= keys; ++n) ASSERT_EQ(index.erase(n), outcome::erased);
  }
  EXPECT_GE(index.stats().medium_bytes, parts::group_bytes(true) + parts::group_bytes(false));
}

TYPED_TEST(fp_tree, A4_leaves_are_used_again) {
  this->expect_leaves_to_be_used_again(
      100, 1, [](const indexes::index_stats& stats) { return stats.medium_bytes + stats.dram_bytes; });
}

TYPED_TEST(fp_tree, P6_groups_of_leaves_follow_each_other) {
  auto index = TypeParam::index::open(*this->under_.medium);
  contents model;
  std::uint64_t bytes = index.stats().medium_bytes;
  std::vector<std::uint64_t> sizes{bytes};
  for (std::uint64_t n = 1; n <= parts::capacity * (parts::leaves_of_oldest_group + 2 * parts::leaves_per_group + 1);
       ++n) {
    ASSERT_EQ(index.insert(n, ~n), outcome::inserted);
    model[n] = ~n;
    if (const auto now = index.stats().medium_bytes; now != bytes) {
      bytes = now;
      sizes.push_back(now);
      ASSERT_TRUE(index.check().ok());
      ASSERT_EQ(compare_all(index, model), "");
    }
  }
  const std::uint64_t oldest = parts::group_bytes(true);
  const std::uint64_t other = parts::group_bytes(false);
  EXPECT_EQ(sizes, (std::vector<std::uint64_t>{oldest, oldest + other, oldest + 2 * other, oldest + 3 * other}));
}

// P7: a leaf that a reader holds is freed and reused for other keys while it reads.
TYPED_TEST(fp_tree, P7_leaves_change_hands_under_readers) {
  if constexpr (!std::is_same_v<typename TypeParam::medium, restartable_medium>) {
    auto index = TypeParam::index::open(*this->under_.medium);
    EXPECT_EQ(wrong_reads_while_nodes_change_hands(index), 0U);
    EXPECT_TRUE(index.check().ok());
    EXPECT_LE(index.stats().medium_bytes, parts::group_bytes(true) + 4 * parts::group_bytes(false));
  }
}

// Readers of the last entries, while the next inserts make these move in their leaf.
TYPED_TEST(fp_tree, F6_entries_that_move_in_their_leaf_are_found_once) {
  if constexpr (!std::is_same_v<typename TypeParam::medium, restartable_medium>) {
    auto index = TypeParam::index::open(*this->under_.medium);
    constexpr std::uint64_t keys = 30'000;
    std::atomic<std::uint64_t> present{0};  // all keys below it
    std::atomic<std::uint64_t> wrong{0};
    std::thread reader([&] {
      std::array<indexes::entry, parts::capacity> found;
      for (std::uint64_t end = 0; end < keys;) {
        end = present;
        const std::uint64_t first = end < found.size() ? 0 : end - found.size();
        for (std::uint64_t n = first; n < end; ++n) wrong += static_cast<std::uint64_t>(index.find(n) != ~n);
        const std::size_t count = index.scan(first, found);
        wrong += static_cast<std::uint64_t>(count < end - first);
        for (std::size_t i = 0; i < count; ++i) wrong += static_cast<std::uint64_t>(found[i].key != first + i);
      }
    });
    for (std::uint64_t n = 0; n < keys; ++n) {
      EXPECT_EQ(index.insert(n, ~n), outcome::inserted);
      present = n + 1;
    }
    reader.join();
    EXPECT_EQ(wrong, 0U);
    EXPECT_TRUE(index.check().ok());
  }
}

// Leaves with every number of free slots, at random places.
TEST(fp_tree_insert_plan, makes_room_beside_the_bitmap_and_stores_to_free_slots_only) {
  random source(1);
  std::uint64_t at_home = 0;
  std::uint64_t moved = 0;
  for (int round = 0; round < 20'000; ++round) {
    parts::leaf l{};
    for (parts::slot& s : l.slots) s.key = source.next();
    const auto free = static_cast<parts::slot_set>(source.next() & source.next() & parts::all_slots);
    if (free == 0) continue;
    const std::uint64_t key = source.next();
    const parts::insert_plan plan = parts::plan_insert(l, key, free);
    const parts::slot_set beside = parts::slots_of_line(0);
    ASSERT_EQ(plan.stored & ~free, 0U);
    ASSERT_NE(plan.stored >> plan.slot & 1U, 0U);
    ASSERT_EQ(plan.moves & ~beside, 0U);
    ASSERT_EQ(std::popcount(plan.stored), 1 + std::popcount(plan.moves));
    if ((free & beside) != 0) {
      ASSERT_EQ(plan.moves, 0U);
      ASSERT_LT(plan.slot, parts::slots_beside_bitmap);
      continue;
    }
    // Only where the line of the new entry is full with it, and all home lines are, does no entry make room.
    if (plan.moves == 0) {
      ASSERT_EQ(free & parts::slots_of_line(parts::line_of(plan.slot)) & ~plan.stored, 0U);
    }
    indexes::detail::for_each_slot(plan.moves, [&](std::size_t from) {
      ASSERT_NE(plan.to[from], plan.slot);
      ASSERT_NE(plan.stored >> plan.to[from] & 1U, 0U);
      ++moved;
      at_home += static_cast<std::uint64_t>(parts::line_of(plan.to[from]) == parts::home_line(l.slots[from].key));
    });
  }
  EXPECT_GT(moved, 0U);
  EXPECT_GT(at_home * 10, moved * 9);
}

// P9: the same with transactions tried first; here and on machines that have none.
TYPED_TEST(fp_tree, P9_works_with_and_without_hardware_transactions) {
  using with = indexes::fp_tree<typename TypeParam::medium, sync::hardware_transactions>;
  contents model;
  auto index = with::open(*this->under_.medium);
  EXPECT_EQ(run_differential(index, model, {.operations = 5000, .key_count = 3000}), "");
  EXPECT_EQ(compare_all(index, model), "");
  std::printf("  inner nodes: %s\n", std::string(with::inner_synchronisation()).c_str());
  EXPECT_EQ(TypeParam::index::inner_synchronisation(), "version locks");
}

// Transactions that succeed, but for every seventh, for one thread: the way that hardware takes where it can.
struct pretended_transactions {
  static bool available() { return true; }
  template <class Body>
  static bool attempt(Body&& body) {
    if (++tries % 7 == 0) return false;
    try {
      body();
    } catch (const given_up&) {
      return false;
    }
    ++successes;
    return true;
  }
  static void give_up() { throw given_up(); }

  struct given_up {};
  static inline std::uint64_t tries = 0;
  static inline std::uint64_t successes = 0;
};

TEST(fp_tree_in_transactions, P9_does_the_same) {
  medium_under_test<media::dram> under;
  contents model;
  auto index = indexes::fp_tree<media::dram, pretended_transactions>::open(*under.medium);
  EXPECT_EQ(run_differential(index, model, {.operations = 20'000, .key_count = 5000}), "");
  EXPECT_EQ(compare_all(index, model), "");
  EXPECT_GT(pretended_transactions::successes, 20'000U);
}

template <class Setting>
class fp_tree_recovery : public fp_tree<Setting> {};
using durable_fp_trees =
    testing::Types<setting<kind<indexes::fp_tree>, media::pmem>, setting<kind<indexes::fp_tree>, restartable_medium>>;
TYPED_TEST_SUITE(fp_tree_recovery, durable_fp_trees, setting_name);

TYPED_TEST(fp_tree_recovery, P1_P5_any_number_of_threads_finds_every_leaf) {
  this->expect_any_number_of_threads_to_find_every_leaf("fp_tree");
}

TYPED_TEST(fp_tree_recovery, P8_an_empty_tree_opens) {
  for (int round = 0; round < 3; ++round) {
    {
      auto index = TypeParam::index::open(*this->under_.medium);
      contents model;
      this->fill(index, model, 3);
      this->erase(index, model, 10, 3 * leaf_of_keys);
    }
    this->under_.reopen();
    auto index = TypeParam::index::open(*this->under_.medium);
    EXPECT_EQ(index.size(), 0U);
    EXPECT_EQ(index.stats().nodes, 1U);
    EXPECT_TRUE(index.check().ok());
    this->under_.reopen();
  }
}

// The list of leaves in the medium, as it is between two stores of a split or of the end of a leaf.
class fp_tree_halfway : public overwritten_tree<indexes::fp_tree<restartable_medium>> {
 protected:
  using index_type = indexes::fp_tree<restartable_medium>;

  parts::leaf* leaf_at(std::size_t position) {
    auto& medium = *under_.medium;
    media::pointer<parts::leaf_group> group(root_word());
    while (medium.resolve(group)->next.load()) group = medium.resolve(group)->next.load();
    parts::leaf* at = medium.resolve(group)->leaves();
    for (; position > 0; --position) at = medium.resolve(at->next.load());
    return at;
  }

  void set_slots(parts::leaf& l, parts::slot_set used) {
    l.bitmap.store(parts::sealed(under_.medium->locate(&l), used, l.next.load()));
  }

  void fill(std::uint64_t leaves) { overwritten_tree::fill(leaves * parts::capacity); }

  // Calls function(leaf) for every leaf of every group, function_of_groups(group) for every group.
  template <class Function, class OfGroups>
  void for_each_leaf(Function&& function, OfGroups&& function_of_groups) {
    auto& medium = *under_.medium;
    media::pointer<parts::leaf_group> at(root_word());
    while (at) {
      parts::leaf_group& group = *medium.resolve(at);
      at = group.next.load();
      for (std::size_t i = 0; i < parts::leaves_in(!at); ++i) function(group.leaves()[i]);
      function_of_groups(group);
    }
  }

  // Makes the tree one of an earlier release.
  void take_seals_away() {
    for_each_leaf([](parts::leaf& l) { l.bitmap.store(parts::slots_in(l.bitmap.load())); },
                  [](parts::leaf_group& g) { g.check.store(0), g.check_again.store(0); });
  }
  std::uint64_t count_seals() {
    std::uint64_t seals = 0;
    auto& medium = *under_.medium;
    for_each_leaf(
        [&](parts::leaf& l) {
          const std::uint64_t bitmap = l.bitmap.load();
          if (bitmap == parts::sealed(medium.locate(&l), parts::slots_in(bitmap), l.next.load())) ++seals;
        },
        [&](parts::leaf_group& g) {
          if (parts::group_link(g, medium.locate(&g)).has_check()) ++seals;
        });
    return seals;
  }

  void expect_sound() {
    for (int round = 0; round < 2; ++round) {
      auto index = index_type::open(*under_.medium);
      EXPECT_EQ(compare_all(index, model_), "");
      EXPECT_TRUE(index.check().ok());
    }
  }
};

// P2, P3: the new leaf is linked, the old one's bitmap still has the moved entries. Recovery clears just those.
TEST_F(fp_tree_halfway, P2_P3_a_split_that_was_cut_off_is_completed) {
  fill(3);
  parts::leaf& left = *leaf_at(0);
  const std::uint64_t full = left.bitmap.load();
  {
    auto index = index_type::open(*under_.medium);
    constexpr std::uint64_t between = 2 * parts::capacity - 1;
    ASSERT_EQ(index.insert(between, 0), outcome::inserted);  // splits the first leaf, and is inserted into the new one
    ASSERT_EQ(index.erase(between), outcome::erased);
    ASSERT_EQ(compare_all(index, model_), "");
  }
  const std::uint64_t half = left.bitmap.load();
  ASSERT_LT(parts::slots_in(half), parts::slots_in(full));
  left.bitmap.store(full);
  expect_sound();
  EXPECT_EQ(left.bitmap.load(), half);
}

TEST_F(fp_tree_halfway, P8_empty_leaves_in_a_row_and_at_the_end_are_unlinked) {
  fill(7);
  for (const std::size_t emptied : {2U, 3U, 6U}) {
    parts::leaf& l = *leaf_at(emptied);
    for (std::size_t i = 0; i < parts::capacity; ++i)
      if ((l.bitmap.load() >> i & 1) != 0) model_.erase(l.slots[i].key.load());
  }
  for (const std::size_t emptied : {2U, 3U, 6U}) set_slots(*leaf_at(emptied), 0);
  expect_sound();
  auto index = index_type::open(*under_.medium);
  EXPECT_EQ(index.stats().nodes, 4U);
}

TEST_F(fp_tree_halfway, corrupt_lists_are_errors) {
  fill(4);
  parts::leaf& second = *leaf_at(1);
  const auto next = second.next.load();
  const auto expect_refused = [&] { EXPECT_PRED2(says, refusal(), "corrupt"); };
  second.next.store(under_.medium->locate(leaf_at(0)));
  expect_refused();
  second.next.store(media::pointer<parts::leaf>(next.word() + 64));
  expect_refused();
  second.next.store(media::pointer<parts::leaf>(~std::uint64_t{0}));
  expect_refused();
  second.next.store(next);
  const std::uint64_t bitmap = second.bitmap.load();
  for (const std::uint64_t damaged :
       {~std::uint64_t{0}, std::uint64_t{0}, bitmap ^ 1U, bitmap ^ std::uint64_t{1} << 63}) {
    second.bitmap.store(damaged);
    expect_refused();
  }
  second.bitmap.store(bitmap);
  const std::uint64_t key = second.slots[0].key.load();
  second.slots[0].key.store(1);
  expect_refused();
  second.slots[0].key.store(key);
  expect_sound();
}

// A crash between the two stores of a line: the link is new, and the seal is of the one before. Each store that links
// or unlinks, and recovery's own.
TEST_F(fp_tree_halfway, a_seal_of_the_link_before_is_mended) {
  fill(8);
  parts::leaf& left = *leaf_at(2);
  const auto sealed_for = [&](media::pointer<parts::leaf> next) {
    left.bitmap.store(parts::sealed(under_.medium->locate(&left), parts::slots_in(left.bitmap.load()), next));
  };
  const auto expect_mended = [&](media::pointer<parts::leaf> before) {
    const std::uint64_t whole = left.bitmap.load();
    sealed_for(before);
    ASSERT_NE(left.bitmap.load(), whole);
    expect_sound();
    EXPECT_EQ(left.bitmap.load(), whole);
  };
  const auto third = left.next.load();
  {
    // A row of one leaf behind the one at 2.
    auto index = index_type::open(*under_.medium);
    const std::array<indexes::entry, 1> row{{{2 * 3 * parts::capacity + 1, 7}}};
    ASSERT_EQ(index.load(row), row.size());
    model_[row[0].key] = row[0].value;
    ASSERT_NE(left.next.load(), third);
  }
  expect_mended(third);
  {
    // Its end: the leaf that was linked is empty, and is unlinked.
    const auto linked = left.next.load();
    auto index = index_type::open(*under_.medium);
    ASSERT_EQ(index.erase(2 * 3 * parts::capacity + 1), outcome::erased);
    model_.erase(2 * 3 * parts::capacity + 1);
    ASSERT_EQ(left.next.load(), third);
    expect_mended(linked);
  }
  // Recovery's: two empty leaves at once.
  for (std::uint64_t n = 3 * parts::capacity + 1; n <= 5 * parts::capacity; ++n) model_.erase(2 * n);
  set_slots(*under_.medium->resolve(third), 0);
  set_slots(*under_.medium->resolve(under_.medium->resolve(third)->next.load()), 0);
  expect_sound();
  ASSERT_NE(left.next.load(), third);
  expect_mended(third);
  // Where the new link leads there is an empty leaf, too: its eraser had not unlinked it when the power failed.
  const auto linked = left.next.load();
  for (std::uint64_t n = 5 * parts::capacity + 1; n <= 6 * parts::capacity; ++n) model_.erase(2 * n);
  under_.medium->resolve(third)->next.store(linked);
  set_slots(*under_.medium->resolve(third), 0);
  set_slots(*under_.medium->resolve(linked), 0);
  sealed_for(third);
  expect_sound();
  EXPECT_NE(left.next.load(), linked);
}

TEST_F(fp_tree_halfway, a_lost_link_is_refused_and_a_salvage_brings_everything_back) {
  fill(100);
  for (const std::size_t at : {0U, 1U, 50U, 97U, 98U}) {
    parts::leaf& l = *leaf_at(at);
    const auto next = l.next.load();
    for (const auto wrong : {media::pointer<parts::leaf>(), under_.medium->locate(leaf_at(at / 2)),
                             under_.medium->locate(leaf_at(99)), media::pointer<parts::leaf>(64)}) {
      if (wrong == next) continue;
      l.next.store(wrong);
      EXPECT_PRED2(says, refusal(), "FP-tree 'fp_tree' is corrupt: ") << at << ": " << refusal();
      EXPECT_PRED2(says, refusal(), std::to_string(99 - at) + " leaves with entries are outside");
      EXPECT_PRED2(says, refusal(), "pmlab pool repair");
      EXPECT_EQ(salvaged(), model_);
      l.next.store(next);
    }
  }
  expect_sound();
}

TEST_F(fp_tree_halfway, a_lost_group_is_refused_and_a_salvage_brings_everything_back) {
  fill(4 * parts::leaves_per_group);
  for_each_leaf([](parts::leaf&) {},
                [&](parts::leaf_group& g) {
                  const auto next = g.next.load();
                  const std::uint64_t check = g.check.load();
                  g.next.store({});
                  EXPECT_NE(refusal(), next ? "" : "refused");
                  EXPECT_EQ(salvaged(), model_);
                  g.check.store(0);
                  EXPECT_NE(refusal(), "");
                  EXPECT_EQ(salvaged(), model_);
                  g.next.store(next);
                  g.check.store(check);
                });
  expect_sound();
}

// A join between its stores: all entries are in both leaves and the link is the one before (L3), the link is new and
// the seal is not (L4), or the right leaf has not given up its entries. With seals and without.
TEST_F(fp_tree_halfway, a_join_that_was_cut_off_is_taken_back_or_completed) {
  fill(5);
  parts::leaf& left = *leaf_at(1);
  parts::leaf& right = *leaf_at(2);
  const auto to_right = left.next.load();
  const auto behind = right.next.load();
  const std::uint64_t of_right = right.bitmap.load();
  {
    auto index = index_type::open(*under_.medium);
    const auto nodes = index.stats().nodes;
    for (std::uint64_t n = parts::capacity + 1; n <= 2 * parts::capacity; ++n) {
      if (n % 2 == 0) continue;
      ASSERT_EQ(index.erase(2 * n), outcome::erased);
      model_.erase(2 * n);
    }
    for (std::uint64_t n = 2 * parts::capacity + 1; index.stats().nodes == nodes; ++n) {
      ASSERT_LT(n, 3 * parts::capacity);
      ASSERT_EQ(index.erase(2 * n), outcome::erased);
      model_.erase(2 * n);
    }
  }
  ASSERT_EQ(left.next.load(), behind);
  ASSERT_EQ(parts::slots_in(right.bitmap.load()), 0U);
  const std::uint64_t joined = left.bitmap.load();
  // The slots of the right leaf whose keys are still there.
  parts::slot_set moved = 0;
  for (std::size_t i = 0; i < parts::capacity; ++i)
    if ((of_right >> i & 1) != 0 && model_.contains(right.slots[i].key.load())) moved |= parts::slot_set{1} << i;
  ASSERT_NE(moved, 0U);

  for (const bool with_seals : {true, false}) {
    if (!with_seals) take_seals_away();
    const auto word = [&](parts::leaf& l, parts::slot_set used, media::pointer<parts::leaf> next) {
      return with_seals ? parts::sealed(under_.medium->locate(&l), used, next) : used;
    };
    const auto cut_off = [&](media::pointer<parts::leaf> link, media::pointer<parts::leaf> sealed_for) {
      left.next.store(link);
      left.bitmap.store(word(left, parts::slots_in(joined), sealed_for));
      right.bitmap.store(word(right, moved, behind));
    };
    cut_off(behind, to_right);  // (J6) and no (J7)
    expect_sound();
    EXPECT_EQ(left.bitmap.load(), word(left, parts::slots_in(joined), behind));
    EXPECT_EQ(left.next.load(), behind);
    cut_off(behind, behind);  // (J7) and no (J10)
    expect_sound();
    EXPECT_EQ(left.bitmap.load(), word(left, parts::slots_in(joined), behind));
    if (with_seals) {
      EXPECT_EQ(parts::slots_in(right.bitmap.load()), 0U);
    }
    cut_off(to_right, to_right);  // (J5) and no (J6)
    expect_sound();
    EXPECT_EQ(parts::slots_in(left.bitmap.load()) & ~parts::slots_in(joined), 0U);
    EXPECT_EQ(std::popcount(parts::slots_in(left.bitmap.load())),
              std::popcount(parts::slots_in(joined)) - std::popcount(moved));
    EXPECT_EQ(parts::slots_in(right.bitmap.load()), moved);
    // A seal that is of a leaf which has something else is damage.
    if (with_seals) {
      cut_off(behind, to_right);
      const auto first = static_cast<std::size_t>(std::countr_zero(moved));
      const std::uint64_t value = right.slots[first].value.load();
      right.slots[first].value.store(value + 1);
      EXPECT_PRED2(says, refusal(), "is overwritten");
      right.slots[first].value.store(value);
      expect_sound();
    }
  }
}

// A move between its stores: the link leads to the copy and the seal is of the leaf that moved (L4), or that leaf has
// not given up its entries. With seals and without.
TEST_F(fp_tree_halfway, a_move_that_was_cut_off_is_completed) {
  fill(2 * parts::leaves_per_group);
  {
    auto index = index_type::open(*under_.medium);
    for (std::uint64_t n = 1; n <= 2 * parts::leaves_per_group * parts::capacity; n += 1)
      if (n % parts::capacity >= 5) {
        ASSERT_EQ(index.erase(2 * n), outcome::erased);
        model_.erase(2 * n);
      }
  }
  parts::leaf& before = *leaf_at(3);
  parts::leaf& moved = *leaf_at(4);
  const auto place = under_.medium->locate(&moved);
  const auto behind = moved.next.load();
  // A free leaf, which the leaf moved from.
  parts::leaf* source = nullptr;
  for_each_leaf(
      [&](parts::leaf& l) {
        if (parts::slots_in(l.bitmap.load()) == 0) source = &l;
      },
      [](parts::leaf_group&) {});
  ASSERT_NE(source, nullptr);
  const auto old_place = under_.medium->locate(source);
  const parts::slot_set used = parts::slots_in(moved.bitmap.load());
  for (const bool with_seals : {true, false}) {
    if (!with_seals) take_seals_away();
    const auto word = [&](parts::leaf& l, parts::slot_set slots, media::pointer<parts::leaf> next) {
      return with_seals ? parts::sealed(under_.medium->locate(&l), slots, next) : slots;
    };
    const auto cut_off = [&](media::pointer<parts::leaf> link, media::pointer<parts::leaf> sealed_for) {
      for (std::size_t i = 0; i < parts::capacity; ++i) {
        source->slots[i].key.store(moved.slots[i].key.load());
        source->slots[i].value.store(moved.slots[i].value.load());
      }
      source->next.store(behind);
      source->bitmap.store(word(*source, used, behind));
      moved.bitmap.store(word(moved, used, behind));
      before.next.store(link);
      before.bitmap.store(word(before, parts::slots_in(before.bitmap.load()), sealed_for));
    };
    const auto expect_in_place = [&] {
      expect_sound();
      EXPECT_EQ(before.next.load(), place);
      EXPECT_EQ(before.bitmap.load(), word(before, parts::slots_in(before.bitmap.load()), place));
      EXPECT_EQ(parts::slots_in(moved.bitmap.load()), used);
      if (with_seals) {
        EXPECT_EQ(parts::slots_in(source->bitmap.load()), 0U);
      }
    };
    cut_off(place, old_place);  // (V3) and no (V4)
    expect_in_place();
    cut_off(place, place);  // (V4) and no (V6)
    expect_in_place();
    cut_off(old_place, old_place);  // (V1) and no (V3)
    expect_sound();
    EXPECT_EQ(before.next.load(), old_place);
    if (with_seals) {
      EXPECT_EQ(parts::slots_in(moved.bitmap.load()), 0U);
    }
    // A seal that is of a leaf which has something else is damage.
    if (with_seals) {
      cut_off(place, old_place);
      const auto first = static_cast<std::size_t>(std::countr_zero(used));
      source->slots[first].value.fetch_add(1);
      EXPECT_PRED2(says, refusal(), "is overwritten");
      cut_off(place, place);
      expect_sound();
    }
  }
}

// Leaves of a split that crashed before its link, or of a row: complete, unreachable leaves. They are emptied, so that
// they are never mistaken for lost ones. A chain that is longer than a row cannot be left by a crash.
TEST_F(fp_tree_halfway, leaves_of_a_crash_outside_the_list_are_emptied_and_others_are_refused) {
  fill(40);
  const auto cut_off = [&](std::size_t count) {
    parts::leaf& last = *leaf_at(39 - count);
    last.next.store({});
    set_slots(last, parts::slots_in(last.bitmap.load()));
  };
  cut_off(17);
  EXPECT_PRED2(says, refusal(), "17 leaves with entries are outside its list");
  EXPECT_EQ(salvaged(), model_);
  model_.erase(model_.upper_bound(2 * 24 * parts::capacity), model_.end());
  {
    // As if a row of 16 had been cut off.
    parts::leaf& last = *leaf_at(22);
    for_each_leaf(
        [&](parts::leaf& l) {
          if (l.slots[0].key.load() > 2 * 23 * parts::capacity && l.slots[0].key.load() <= 2 * 24 * parts::capacity) {
            last.next.store(under_.medium->locate(&l));
            l.next.store({});
            set_slots(l, parts::slots_in(l.bitmap.load()));
          }
        },
        [](parts::leaf_group&) {});
    set_slots(last, parts::slots_in(last.bitmap.load()));
  }
  expect_sound();
  for_each_leaf(
      [&](parts::leaf& l) {
        if (const auto key = l.slots[0].key.load(); key > 2 * 24 * parts::capacity && key <= 2 * 40 * parts::capacity) {
          EXPECT_EQ(parts::slots_in(l.bitmap.load()), 0U);
        }
      },
      [](parts::leaf_group&) {});
}

// A tree of an earlier release has no seals, works, and gets none; lost links are reported as far as possible.
TEST_F(fp_tree_halfway, a_tree_without_seals_opens_and_stays_one) {
  fill(100);
  take_seals_away();
  expect_sound();
  {
    auto index = index_type::open(*under_.medium);
    ASSERT_EQ(run_differential(index, model_, {.operations = 20'000, .key_count = 20'000}), "");
    ASSERT_TRUE(index.check().ok());
  }
  expect_sound();
  EXPECT_EQ(count_seals(), 0U);
  parts::leaf& l = *leaf_at(10);
  const auto next = l.next.load();
  l.next.store({});
  EXPECT_PRED2(says, refusal(), "leaves with entries are outside its list");
  EXPECT_EQ(salvaged(), model_);
  l.next.store(next);
  expect_sound();
}

// An insert that moves entries, between its stores: they are in their old slots, or in their new ones. With seals and
// without.
TEST_F(fp_tree_halfway, an_insert_that_moves_entries_is_whole_or_has_not_happened) {
  fill(0);
  for (const bool with_seals : {true, false}) {
    if (!with_seals) take_seals_away();
    parts::leaf& l = *leaf_at(0);
    std::uint64_t moves = 0;
    for (std::uint64_t key = with_seals ? 1 : 2; key < parts::capacity - 1; key += 2) {
      std::array<std::uint64_t, parts::slots_beside_bitmap> beside;
      for (std::size_t i = 0; i < beside.size(); ++i) beside[i] = l.slots[i].key.load();
      const std::uint64_t before = l.bitmap.load();
      {
        auto index = index_type::open(*under_.medium);
        ASSERT_EQ(index.insert(key, ~key), outcome::inserted);
      }
      const std::uint64_t after = l.bitmap.load();
      const parts::slot_set left = parts::slots_in(before) & ~parts::slots_in(after);
      moves += static_cast<std::uint64_t>(std::popcount(left));
      ASSERT_EQ(left & ~parts::slots_of_line(0), 0U);
      if (left != 0) {
        for (std::size_t i = 0; i < beside.size(); ++i) ASSERT_EQ(l.slots[i].key.load(), beside[i]);
      }
      l.bitmap.store(before);
      expect_sound();
      l.bitmap.store(after);
      model_[key] = ~key;
      expect_sound();
    }
    EXPECT_GT(moves, 2U);
  }
}

// The old words of an entry that has moved are still there: a salvage of the leaf gives its new value first.
TEST_F(fp_tree_halfway, a_salvage_prefers_an_entry_that_has_moved_to_its_old_words) {
  {
    auto index = index_type::open(*under_.medium);
    for (std::uint64_t key = 1; key <= 4; ++key) ASSERT_EQ(index.insert(key, 0), outcome::inserted);
    for (std::uint64_t key = 1; key <= 4; ++key) {
      ASSERT_EQ(index.update(key, 100 + key), outcome::updated);
      model_[key] = 100 + key;
    }
  }
  parts::leaf& l = *leaf_at(0);
  ASSERT_NE(parts::slots_in(l.bitmap.load()) & parts::slots_of_line(0), parts::slots_of_line(0));
  l.bitmap.store(~l.bitmap.load());
  ASSERT_NE(refusal(), "");
  const contents found = salvaged();
  for (const auto& [key, value] : model_) EXPECT_EQ(found.at(key), value);
}

// Recovery with half a million keys, a hundredth of the time that ten million may take.
TEST(fp_tree_recovery_time, is_short) {
  medium_under_test<media::pmem> under(std::uint64_t{256} << 20);
  constexpr std::uint64_t keys = 500'000;
  {
    auto index = indexes::fp_tree<media::pmem>::open(*under.medium);
    for (std::uint64_t n = 0; n < keys; ++n) ASSERT_EQ(index.insert(n * 0x9e3779b97f4a7c15U, n), outcome::inserted);
  }
  under.reopen();
  const auto start = std::chrono::steady_clock::now();
  auto index = indexes::fp_tree<media::pmem>::open(*under.medium);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  std::printf("  recovery of %llu keys: %.1f ms\n", static_cast<unsigned long long>(keys), 1000 * took.count());
  EXPECT_EQ(index.size(), keys);
  EXPECT_LT(took.count(), 2.0);
}

}  // namespace
}  // namespace pmlab::tests
