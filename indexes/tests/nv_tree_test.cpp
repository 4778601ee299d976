// The NV-Tree's own behaviour: leaves that are replaced, joined and freed, an inner array that is built while others
// read, and a list of leaves that is validated when it is opened.
#include <pmlab/indexes/detail/search_block.hpp>
#include <pmlab/indexes/detail/search_layer.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/nv_tree.hpp>
#include <pmlab/indexes/nv_tree/inner_array.hpp>
#include <pmlab/indexes/nv_tree/inner_nodes.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/sync/epoch.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <span>
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

namespace parts = indexes::detail::nv_tree;
using indexes::outcome;

template <class Setting>
class nv_tree : public leaf_tree_test<Setting, Setting::index::capacity> {};

using nv_tree_settings =
    testing::Types<setting<kind<indexes::nv_tree>, media::dram>, setting<kind<indexes::nv_tree>, media::pmem>,
                   setting<kind<indexes::nv_tree>, restartable_medium>>;
TYPED_TEST_SUITE(nv_tree, nv_tree_settings, setting_name);

// The leaves that a group still has may all be waiting for a reader: then others are moved.
TEST(nv_tree_leaves, that_wait_for_a_reader_are_not_to_be_moved) {
  using medium_type = media::dram;
  constexpr std::size_t groups = 4;
  constexpr std::size_t in_group = parts::leaves_in<medium_type>(false);
  medium_under_test<medium_type> under;
  std::atomic<std::uint64_t> root{0};
  parts::leaf_store<medium_type> store(*under.medium, root);
  std::vector<parts::leaf*> leaves;
  while (leaves.size() < parts::leaves_of_oldest_group - 1 + groups * in_group) {
    leaves.push_back(store.take(true));
    ASSERT_NE(leaves.back(), nullptr);
    store.fill(*leaves.back(), leaves.size(), {}, {});
  }
  // Two leaves are left of the second group that was taken, five of each other one.
  const auto group_of = [&](std::size_t g) {
    return std::span(leaves).subspan(parts::leaves_of_oldest_group - 1 + g * in_group, in_group);
  };
  const auto left_of = [](std::size_t g) -> std::size_t { return g == 1 ? 2 : 5; };
  for (std::size_t g = 0; g < groups; ++g)
    for (parts::leaf* const l : group_of(g).subspan(left_of(g))) store.give_back(*l);
  const auto is_of = [&](const parts::leaf* l, std::size_t g) { return std::ranges::count(group_of(g), l) == 1; };
  const auto first = store.to_move();
  ASSERT_TRUE(first && is_of(first->at, 1));

  const std::uint64_t before = store.medium_bytes();
  for (const std::size_t i : {0U, 1U}) store.has_left(*group_of(1)[i]);
  for (int i = 0; i < 10; ++i) {
    const auto found = store.to_move();
    ASSERT_TRUE(found);
    EXPECT_FALSE(is_of(found->at, 1)) << i;
  }
  for (const std::size_t i : {0U, 1U}) store.give_back(*group_of(1)[i]);
  EXPECT_EQ(store.medium_bytes(), before - parts::group_bytes<medium_type>(false));
}

// L2: a full leaf is extended for a key only if it does not have that key. Another thread may have added it since the
// first look, so that the decision is made with the leaf's lock.
TEST(nv_tree_leaf, is_not_extended_for_a_key_that_it_has) {
  constexpr std::size_t count = 5;
  alignas(parts::leaf) std::array<std::byte, sizeof(parts::leaf) + count * sizeof(parts::slot)> place{};
  auto& leaf = *new (place.data()) parts::leaf;
  const std::uint64_t low = parts::low_of_region(2);
  const std::array<std::uint64_t, count> keys{low + 30, low + 10, low + 50, low + 20, low + 40};
  for (std::size_t i = 0; i < count; ++i) {
    new (&leaf[i]) parts::slot;
    leaf[i].word = parts::slot_word::of(keys[i], parts::states::live);
  }
  EXPECT_TRUE(parts::has_only_keys_below(leaf, count, low, low + 51));
  EXPECT_FALSE(parts::has_only_keys_below(leaf, count, low, low + 50));
  EXPECT_FALSE(parts::has_only_keys_below(leaf, count, low, low + 49));
  EXPECT_FALSE(parts::has_only_keys_below(leaf, count, low, low));
}

// L3: keys around the bounds of the regions, whose upper bits are not stored with them.
TYPED_TEST(nv_tree, keys_of_every_region_keep_their_upper_bits) {
  auto index = TypeParam::index::open(*this->under_.medium);
  contents model;
  for (std::size_t r = 0; r < parts::regions; ++r)
    for (std::uint64_t n = 0; n < 500; ++n)
      for (const std::uint64_t key : {parts::low_of_region(r) + n, parts::low_of_region(r) - 1 - n}) {
        ASSERT_EQ(index.insert(key, ~key), outcome::inserted);
        model[key] = ~key;
      }
  EXPECT_EQ(compare_all(index, model), "");
  EXPECT_TRUE(index.check().ok());
  for (std::uint64_t n = 0; n < 500; ++n) {
    ASSERT_EQ(index.erase(parts::low_of_region(2) + n), outcome::erased);
    model.erase(parts::low_of_region(2) + n);
  }
  EXPECT_EQ(compare_all(index, model), "");
  EXPECT_TRUE(index.check().ok());
}

TYPED_TEST(nv_tree, ascending_keys_leave_full_leaves_and_random_ones_split_in_halves) {
  auto index = TypeParam::index::open(*this->under_.medium);
  contents model;
  this->fill(index, model, 20);
  EXPECT_EQ(index.stats().nodes, 20 + parts::regions - 1);
  random source(1);
  for (const std::uint64_t key : make_keys(key_set::anywhere, 20'000, source)) {
    index.insert(key, key);
    model.emplace(key, key);
  }
  EXPECT_EQ(compare_all(index, model), "");
  EXPECT_GE(index.stats().load_factor, 0.65);
}

// The slots of erased entries are reclaimed when their leaf is replaced: a tree of few keys stays small.
TYPED_TEST(nv_tree, erased_entries_are_compacted) {
  auto index = TypeParam::index::open(*this->under_.medium);
  for (std::uint64_t n = 0; n < 100'000; ++n) {
    ASSERT_EQ(index.insert(n % 40, n), outcome::inserted);
    ASSERT_EQ(index.erase(n % 40), outcome::erased);
  }
  EXPECT_EQ(index.stats().nodes, parts::regions);
  EXPECT_EQ(index.stats().medium_bytes, parts::group_bytes<typename TypeParam::medium>(true));
  EXPECT_TRUE(index.check().ok());
}

TYPED_TEST(nv_tree, leaves_emptied_from_left_right_and_middle_leave_the_tree) {
  this->expect_emptied_leaves_to_go(parts::regions);
}

TYPED_TEST(nv_tree, sparse_leaves_are_joined_and_groups_go_back_to_the_medium) {
  random source(5);
  for (const std::uint64_t one_in : {2U, 10U, 100U}) {
    contents model;
    const std::string name = "tree" + std::to_string(one_in);
    const std::uint64_t allocated = this->under_.medium->used().allocated_bytes;
    {
      auto index = TypeParam::index::open(*this->under_.medium, name);
      const std::uint64_t before = this->fill_and_thin_out(index, model, source, 20'000, one_in);
      const auto stats = index.stats();
      EXPECT_GE(stats.load_factor, model.size() < 1000 ? 0.3 : 0.45);
      // A quarter more leaves than are in use, and three groups.
      using medium = typename TypeParam::medium;
      EXPECT_LE(stats.medium_bytes,
                stats.nodes * 5 / 4 * parts::leaf_bytes<medium> * 21 / 20 + 4 * parts::group_bytes<medium>(false));
      EXPECT_LT(stats.medium_bytes, before);
      this->expect_sound_and_working(index, model, one_in);
    }
    auto index = TypeParam::index::open(*this->under_.medium, name);
    if constexpr (std::is_same_v<typename TypeParam::medium, restartable_medium>) {
      EXPECT_EQ(this->under_.medium->used().allocated_bytes - allocated, index.stats().medium_bytes);
    }
    this->expect_sound_and_working(index, model, one_in);
  }
}

// A group that is free at once does not keep those in place that are nearly so.
TYPED_TEST(nv_tree, a_free_group_does_not_keep_the_others) {
  using medium = typename TypeParam::medium;
  constexpr std::uint64_t group_of_keys = 63 * TypeParam::index::capacity;
  constexpr std::uint64_t groups = 12;
  contents model;
  const auto erase_some = [&](auto& index, std::uint64_t first, std::uint64_t last, std::uint64_t one_in) {
    for (std::uint64_t n = first; n <= last; ++n) {
      if (n / this->capacity % one_in == 0) continue;
      ASSERT_EQ(index.erase(10 * n), outcome::erased);
      model.erase(10 * n);
    }
  };
  const auto expect_small = [&](auto& index) {
    const auto stats = index.stats();
    EXPECT_LE(stats.medium_bytes,
              stats.nodes * 5 / 4 * parts::leaf_bytes<medium> * 21 / 20 + 4 * parts::group_bytes<medium>(false));
    EXPECT_TRUE(index.check().ok());
    EXPECT_EQ(compare_all(index, model), "");
  };
  {
    auto index = TypeParam::index::open(*this->under_.medium);
    this->fill(index, model, groups * 63);
    constexpr std::uint64_t never = groups * group_of_keys;
    erase_some(index, (groups - 1) * group_of_keys, groups * group_of_keys, never);
    erase_some(index, 1, (groups / 2) * group_of_keys, 5);
    expect_small(index);
  }
  auto index = TypeParam::index::open(*this->under_.medium);
  erase_some(index, (groups / 2) * group_of_keys + 1, (groups - 1) * group_of_keys - 1, 5);
  expect_small(index);
}

TYPED_TEST(nv_tree, A4_leaves_are_used_again) {
  this->expect_leaves_to_be_used_again(50, parts::regions,
                                       [](const indexes::index_stats& stats) { return stats.medium_bytes; });
}

// A leaf and a descriptor that a reader holds go while it reads, and its leaf is used for other keys.
TYPED_TEST(nv_tree, leaves_change_hands_under_readers) {
  if constexpr (!std::is_same_v<typename TypeParam::medium, restartable_medium>) {
    auto index = TypeParam::index::open(*this->under_.medium);
    EXPECT_EQ(wrong_reads_while_nodes_change_hands(index), 0U);
    EXPECT_TRUE(index.check().ok());
  }
}

// ---- the inner nodes ----

// The array's search finds the greatest low <= key, for any number of blocks, and at the bounds of keys.
TEST(nv_tree_inner_array, finds_the_block_of_every_key) {
  using block = indexes::detail::search_block;
  constexpr std::uint64_t greatest = std::numeric_limits<std::uint64_t>::max();
  for (const std::size_t count : {1U, 2U, 7U, 8U, 9U, 63U, 64U, 65U, 511U, 513U, 5000U}) {
    std::vector<block> blocks(count);
    std::vector<block*> known;
    for (std::size_t i = 0; i < count; ++i) {
      // The last one may begin with the greatest key, which free places have, too.
      blocks[i].begin(0, i + 1 == count && count > 1 ? greatest : 10 * i, 0, nullptr);
      known.push_back(&blocks[i]);
    }
    const std::unique_ptr<parts::inner_array> array(parts::inner_array::make(known));
    ASSERT_NE(array, nullptr);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t low = blocks[i].low.load();
      ASSERT_EQ(array->find(low), known[i]) << count;
      if (low != greatest) {
        ASSERT_EQ(array->find(low + 1), known[i + 1 == count || low + 1 < blocks[i + 1].low.load() ? i : i + 1]);
      }
      if (i > 0) {
        ASSERT_EQ(array->find(low - 1), known[i - 1]) << count;
      }
    }
    ASSERT_EQ(array->find(greatest), known.back());
  }
}

// Readers find every entry that stays, while others are added and removed in one place, so that arrays follow each
// other.
TEST(nv_tree_inner_nodes, arrays_are_built_under_readers) {
  sync::epochs epochs(1);
  parts::inner_nodes nodes(epochs);
  constexpr std::uint64_t stay = 2000;
  constexpr std::uint64_t distance = 1'000'000;
  std::vector<indexes::detail::search_entry> entries;
  for (std::uint64_t n = 0; n < stay; ++n) entries.push_back({n * distance, n + 1});
  nodes.build(entries);
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0};
  std::vector<std::thread> readers;
  for (std::uint64_t r = 0; r < 2; ++r)
    readers.emplace_back([&, r] {
      random source(r);
      while (!stop.load()) {
        const auto guard = epochs.pin();
        const std::uint64_t n = source.below(stay);
        if (nodes.floor(n * distance) != n + 1) ++wrong;
      }
    });
  const std::uint64_t bytes = nodes.bytes();
  std::uint64_t most_bytes = 0;
  for (std::uint64_t cycle = 0; cycle < 20; ++cycle) {
    const std::uint64_t base = cycle * 97 % stay * distance;
    for (std::uint64_t n = 1; n < 5000; ++n) {
      const auto guard = epochs.pin();
      EXPECT_TRUE(nodes.put(base + n, ~n));
      nodes.rebuild_if_due();
    }
    most_bytes = std::max(most_bytes, nodes.bytes());
    for (std::uint64_t n = 1; n < 5000; ++n) {
      const auto guard = epochs.pin();
      nodes.remove(base + n, ~n);
      nodes.rebuild_if_due();
    }
  }
  stop = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(wrong.load(), 0U);
  // Blocks that were emptied have gone.
  EXPECT_GT(most_bytes, 2 * bytes);
  EXPECT_LT(nodes.bytes(), 3 * bytes);
  indexes::check_report report;
  std::uint64_t left = 0;
  nodes.check(report, [&](std::uint64_t key, std::uint64_t word) {
    if (word != key / distance + 1) report.add("a word");
    ++left;
  });
  EXPECT_TRUE(report.ok()) << report.violations.front();
  EXPECT_EQ(left, stay);
  epochs.drain();
}

// ---- opening ----

template <class Setting>
class nv_tree_recovery : public nv_tree<Setting> {};
using durable_nv_trees =
    testing::Types<setting<kind<indexes::nv_tree>, media::pmem>, setting<kind<indexes::nv_tree>, restartable_medium>>;
TYPED_TEST_SUITE(nv_tree_recovery, durable_nv_trees, setting_name);

TYPED_TEST(nv_tree_recovery, any_number_of_threads_finds_every_leaf) {
  this->expect_any_number_of_threads_to_find_every_leaf("nv_tree");
}

// Words of the medium that are overwritten.
class nv_tree_damage : public overwritten_tree<indexes::nv_tree<restartable_medium>> {
 protected:
  void SetUp() override { fill(10 * indexes::nv_tree<restartable_medium>::capacity); }

  parts::leaf_group& newest_group() { return *under_.medium->resolve(parts::group_place(root_word())); }
  // 0: the head.
  parts::leaf& leaf_at(std::size_t position) {
    parts::group_place group(root_word());
    while (under_.medium->resolve(group)->next.load()) group = under_.medium->resolve(group)->next.load();
    parts::leaf* at = under_.medium->resolve(group)->leaves();
    for (; position > 0; --position)
      at = under_.medium->resolve(parts::read_header(*at, under_.medium->locate(at)).next);
    return *at;
  }
};

TEST_F(nv_tree_damage, a_sound_tree_is_salvaged_whole) { EXPECT_EQ(salvaged(), model_); }

TEST_F(nv_tree_damage, links_that_were_overwritten) {
  for (const std::size_t position : {0U, 1U, 5U}) {
    parts::leaf& l = leaf_at(position);
    const std::uint64_t link = l.link.load();
    for (const std::uint64_t bad : {std::uint64_t{0}, link ^ 0x400, link ^ (std::uint64_t{1} << 60), ~link}) {
      l.link.store(bad);
      expect_refused_and_all_salvaged("the header of leaf");
    }
    l.link.store(link);
    EXPECT_EQ(refusal(), "");
  }
}

TEST_F(nv_tree_damage, a_list_in_a_circle_and_one_that_leads_out_of_the_leaves) {
  parts::leaf& l = leaf_at(5);
  const std::uint64_t link = l.link.load();
  const auto lead_to = [&](parts::leaf_place place) {
    l.link.store(parts::link_to(place, under_.medium->locate(&l), l.low.load()));
  };
  lead_to(under_.medium->locate(&leaf_at(2)));
  expect_refused_and_all_salvaged("in a circle");
  lead_to(parts::leaf_place(under_.medium->locate(&l).word() + 64));
  expect_refused_and_all_salvaged("leads nowhere");
  lead_to(parts::leaf_place(std::uint64_t{1} << 40));
  expect_refused_and_all_salvaged("leads nowhere");
  l.link.store(link);
  EXPECT_EQ(refusal(), "");
}

TEST_F(nv_tree_damage, a_low_and_slots_that_were_overwritten) {
  parts::leaf& l = leaf_at(5);
  const std::uint64_t low = l.low.load();
  l.low.store(low + 2);
  expect_refused_and_all_salvaged("the header of leaf");
  l.low.store(~low);
  expect_refused_and_all_salvaged("the header of leaf");
  l.low.store(low);
  l.low_again.store(~low);
  expect_refused_and_all_salvaged("the header of leaf");
  l.low_again.store(low);
  const parts::slot_word word = l[7].word.load();
  // A free slot among used ones, the state that there is not, a key out of the range, a free slot with a key.
  for (const std::uint64_t bad :
       {std::uint64_t{0}, word.word | 3, word.word ^ (std::uint64_t{1} << 50), std::uint64_t{8}}) {
    l[7].word.store(parts::slot_word{bad});
    EXPECT_PRED2(says, refusal(), "slots of leaf");
  }
  l[7].word.store(word);
  EXPECT_EQ(refusal(), "");
}

TEST_F(nv_tree_damage, a_group_header_that_was_overwritten) {
  parts::leaf_group& g = newest_group();
  const auto next = g.next.load();
  g.next.store(parts::group_place(next.word() ^ 0x1000));
  // The second copy of the link is used.
  expect_refused_and_all_salvaged("the header of leaf group");
  g.next.store(next);
  EXPECT_EQ(refusal(), "");
}

}  // namespace
}  // namespace pmlab::tests
