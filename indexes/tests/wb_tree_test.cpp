// The wB+-tree's own behaviour: the word that sorts a node, splits and joins at every level, and overwritten nodes.
#include <pmlab/base/error.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/wb_tree.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/comparison.hpp"
#include "support/differential.hpp"
#include "support/leaf_tree.hpp"
#include "support/operations.hpp"
#include "support/restartable_medium.hpp"
#include "support/settings.hpp"
#include "support/watchdog.hpp"

namespace pmlab::tests {
namespace {

namespace parts = indexes::detail::wb_tree;
using indexes::entry;
using indexes::outcome;
using parts::slot_array;

// Every change of the word against a plain list of slots.
TEST(wb_tree_slot_array, is_a_list_of_slots) {
  random source(1);
  for (const std::uint64_t level : {std::uint64_t{0}, std::uint64_t{5}, parts::most_levels - 1}) {
    slot_array word = slot_array::empty(level);
    std::vector<std::size_t> list;
    for (int step = 0; step < 20'000; ++step) {
      if (!word.is_full() && (list.empty() || source.one_in(2))) {
        const std::size_t rank = source.below(list.size() + 1);
        const std::size_t slot = source.one_in(2) ? word.first_free() : word.last_free();
        ASSERT_EQ(std::count(list.begin(), list.end(), slot), 0);
        word = word.with(rank, slot);
        list.insert(list.begin() + static_cast<std::ptrdiff_t>(rank), slot);
      } else if (source.one_in(8)) {
        const std::size_t count = source.below(list.size() + 1);
        word = word.first(count);
        list.resize(count);
      } else {
        const std::size_t rank = source.below(list.size());
        word = word.without(rank);
        list.erase(list.begin() + static_cast<std::ptrdiff_t>(rank));
      }
      ASSERT_TRUE(word.is_valid());
      ASSERT_EQ(word.level(), level);
      ASSERT_EQ(word.count(), list.size());
      for (std::size_t rank = 0; rank < list.size(); ++rank) ASSERT_EQ(word[rank], list[rank]);
    }
  }
}

TEST(wb_tree_slot_array, words_that_no_operation_makes_are_not_valid) {
  EXPECT_FALSE(slot_array(0).is_valid());
  EXPECT_FALSE(slot_array(~std::uint64_t{0}).is_valid());
  const slot_array one = slot_array::empty(0).with(0, 0);
  EXPECT_TRUE(one.is_valid());
  EXPECT_FALSE(slot_array(one.word() + 1).is_valid()) << "two entries, and one of them twice";
  EXPECT_FALSE(slot_array(slot_array::empty(0).with(0, 3).word() - 1).is_valid()) << "a slot behind the last entry";
  EXPECT_TRUE(one.on_level(parts::gone_level).is_valid());
  random source(1);
  std::size_t valid = 0;
  for (int n = 0; n < 100'000; ++n) {
    const slot_array word(source.next());
    valid += word.is_valid() ? 1 : 0;
    for (std::size_t rank = 0; rank < word.count(); ++rank) ASSERT_LT(word[rank], parts::capacity);
  }
  EXPECT_LE(valid, 10U) << "of a hundred thousand random words";
}

template <class Setting>
class wb_tree : public leaf_tree_test<Setting, parts::capacity> {};

using wb_tree_settings =
    testing::Types<setting<kind<indexes::wb_tree>, media::dram>, setting<kind<indexes::wb_tree>, media::pmem>,
                   setting<kind<indexes::wb_tree>, restartable_medium>>;
TYPED_TEST_SUITE(wb_tree, wb_tree_settings, setting_name);

// Ascending, descending and random keys, until there are inner nodes that are split, too; after each new level the tree
// is checked, and it is the same after reopening.
TYPED_TEST(wb_tree, F3_F16_splits_at_every_level) {
  for (const int order : {0, 1, 2}) {
    const std::string name = "tree" + std::to_string(order);
    contents model;
    random source(7);
    {
      auto index = TypeParam::index::open(*this->under_.medium, name);
      std::uint64_t depth = 1;
      for (std::uint64_t n = 0; depth < 5 || n % 1000 != 0; ++n) {
        const std::uint64_t key = order == 0 ? n : order == 1 ? ~n : source.next();
        ASSERT_EQ(index.insert(key, n), outcome::inserted);
        model[key] = n;
        // The root's level is that of the whole tree.
        if (n % 100 != 0) continue;
        const std::uint64_t now = index.stats().depth;
        ASSERT_LE(now, depth + 1);
        if (now != depth) this->expect_sound(index, model);
        depth = now;
      }
      EXPECT_GE(index.stats().load_factor, order == 0 ? 0.99 : 0.45);
    }
    auto again = TypeParam::index::open(*this->under_.medium, name);
    this->expect_sound(again, model);
    EXPECT_EQ(run_differential(again, model, {.seed = 3, .operations = 3000, .key_count = 10'000}), "");
  }
}

// Entries leave from the left, from the right and from the middle: one leaf is left, and the tree grows again.
TYPED_TEST(wb_tree, F4_A4_deletes_take_leaves_and_levels_out) {
  constexpr std::uint64_t keys = 3000;
  for (const int order : {0, 1, 2}) {
    auto index = TypeParam::index::open(*this->under_.medium, "tree" + std::to_string(order));
    contents model;
    for (const bool again : {false, true}) {
      for (std::uint64_t n = 0; n < keys; ++n) {
        ASSERT_EQ(index.insert(10 * n, n), outcome::inserted);
        model[10 * n] = n;
      }
      ASSERT_GE(index.stats().depth, 3U);
      for (std::uint64_t n = 0; n < keys; ++n) {
        const std::uint64_t of = order == 0 ? n : order == 1 ? keys - 1 - n : (n + keys / 2) % keys;
        ASSERT_EQ(index.erase(10 * of), outcome::erased);
        ASSERT_EQ(index.erase(10 * of), outcome::absent);
        model.erase(10 * of);
        if (n % 100 == 0) this->expect_sound(index, model);
      }
      EXPECT_EQ(index.stats().nodes, 1U);
      EXPECT_EQ(index.stats().depth, 1U) << again;
    }
  }
}

// Two neighbours under one parent never fit into one node for long.
TYPED_TEST(wb_tree, sparse_leaves_are_joined) {
  for (const std::uint64_t stays : {2U, 5U, 20U, 31U, 100U}) {
    auto index = TypeParam::index::open(*this->under_.medium, "tree" + std::to_string(stays));
    contents model;
    constexpr std::uint64_t keys = 60 * parts::capacity;
    for (std::uint64_t n = 1; n <= keys; ++n) ASSERT_EQ(index.insert(n, n), outcome::inserted);
    for (std::uint64_t n = 1; n <= keys; ++n) {
      if (n % stays == 0)
        model[n] = n;
      else
        ASSERT_EQ(index.erase(n), outcome::erased);
    }
    this->expect_sound(index, model);
    EXPECT_LE(index.stats().nodes, model.size() / 3 + 3) << "one of " << stays;
    EXPECT_EQ(run_differential(index, model, {.seed = stays, .operations = 5000, .key_count = 10'000}), "");
  }
}

TYPED_TEST(wb_tree, retired_nodes_are_released_by_the_next_open) {
  {
    auto index = TypeParam::index::open(*this->under_.medium);
    for (std::uint64_t n = 0; n < 2000; ++n) ASSERT_EQ(index.insert(n, n), outcome::inserted);
    for (std::uint64_t n = 0; n < 2000; ++n) ASSERT_EQ(index.erase(n), outcome::erased);
  }
  auto again = TypeParam::index::open(*this->under_.medium);
  EXPECT_EQ(again.stats().nodes, 1U);
  EXPECT_EQ(again.stats().medium_bytes, sizeof(parts::node));
}

// A load between two neighbours fills leaves that the parents of the row have room for.
TYPED_TEST(wb_tree, a_load_fills_its_leaves) {
  auto index = TypeParam::index::open(*this->under_.medium);
  std::vector<entry> some;
  contents model;
  for (std::uint64_t n = 0; n < 20'000; ++n) {
    some.push_back({3 * n, n});
    model[3 * n] = n;
  }
  ASSERT_EQ(index.load(some), some.size());
  this->expect_sound(index, model);
  EXPECT_GE(index.stats().load_factor, 0.84);
}

// ---- damage ----

using dram_tree = indexes::wb_tree<media::dram>;

class damaged_wb_tree : public testing::Test {
 protected:
  damaged_wb_tree() {
    random source(5);
    auto index = dram_tree::open(memory_);
    while (index.stats().depth < 4)
      for (int n = 0; n < 200; ++n) {
        const std::uint64_t key = source.next();
        if (index.insert(key, ~key) == outcome::inserted) model_[key] = ~key;
      }
    for (auto at = model_.begin(); at != model_.end();) {
      if (source.one_in(5)) {
        index.erase(at->first);
        at = model_.erase(at);
      } else {
        ++at;
      }
    }
  }

  parts::node& root() {
    return *memory_.resolve(media::pointer<parts::node>(memory_.named_root("wb_tree", "wb_tree", 1).word->load()));
  }
  // From left to right.
  std::vector<parts::node*> nodes_of_level(std::uint64_t number) {
    parts::node* first = &root();
    while (first->array().level() != number) first = memory_.resolve(first->child_at(first->array()[0]));
    std::vector<parts::node*> level{first};
    while (const auto next = level.back()->sibling.load()) level.push_back(memory_.resolve(next));
    return level;
  }
  // The first node of each level, one in the middle, and the last one.
  std::vector<parts::node*> nodes() {
    std::vector<parts::node*> some;
    for (std::uint64_t number = root().array().level() + 1; number-- > 0;) {
      const std::vector<parts::node*> level = nodes_of_level(number);
      for (parts::node* n : {level.front(), level[level.size() / 2], level.back()})
        if (std::count(some.begin(), some.end(), n) == 0) some.push_back(n);
    }
    return some;
  }

  // Opens, checks, reads and writes; counts the entries that a repair brings back.
  std::size_t salvaged() {
    try {
      auto index = dram_tree::open(memory_);
      static_cast<void>(index.check());
      for (const auto& [key, value] : model_) {
        try {
          static_cast<void>(index.find(key));
          static_cast<void>(index.update(key, value));
        } catch (const error&) {
          ++refused_;
        }
      }
    } catch (const error&) {
      ++refused_;
    }
    std::size_t back = 0;
    std::uint64_t last = 0;
    try {
      dram_tree::salvage(memory_, "wb_tree", [&](std::uint64_t key, std::uint64_t value) {
        EXPECT_TRUE(last == 0 || key > last);
        last = key;
        const auto known = model_.find(key);
        const bool is_right = known != model_.end() && known->second == value;
        (is_right ? back : wrong_) += 1;
      });
    } catch (const error&) {
      ++reported_;
    }
    return back;
  }

  const watchdog limit_{std::chrono::seconds(60), "a loop in a damaged tree"};
  media::dram memory_;
  contents model_;
  std::size_t refused_ = 0;
  std::size_t reported_ = 0;
  std::size_t wrong_ = 0;  // entries that a repair made up
};

TEST_F(damaged_wb_tree, a_sound_one_is_read_whole_without_a_complaint) {
  EXPECT_EQ(salvaged(), model_.size());
  EXPECT_EQ(refused_ + reported_, 0U);
}

TEST_F(damaged_wb_tree, entries_come_back_from_below_a_root_without_children) {
  parts::node& root = *nodes().front();
  root.slots = slot_array::empty(root.array().level()).word();
  EXPECT_EQ(salvaged(), model_.size());
  EXPECT_EQ(reported_, 1U);
  EXPECT_GE(refused_, 1U);
}

// Any word of a header becomes zero, or all ones, or one of another node: no entry is lost.
TEST_F(damaged_wb_tree, entries_come_back_around_any_overwritten_header_word) {
  std::size_t tried = 0;
  for (parts::node* const n : nodes())
    for (std::size_t word = 0; word < 3; ++word)
      for (const std::uint64_t wrong : {std::uint64_t{0}, ~std::uint64_t{0}, nodes().back()->slots.load() ^ 0x10}) {
        auto& at = reinterpret_cast<std::atomic<std::uint64_t>*>(n)[word];
        const std::uint64_t right = at.load();
        if (right == wrong) continue;
        at = wrong;
        ++tried;
        // Without a link or a dram medium's bounds, a link of ones cannot be told from a good one.
        if (word != 2 || wrong == 0) {
          EXPECT_GE(salvaged() + 1, model_.size()) << n->array().level() << " " << word;
        }
        at = right;
      }
  EXPECT_EQ(salvaged(), model_.size());
  EXPECT_GE(reported_, tried / 3);
}

// ---- damage that would be a loop ----

// Links that lead back: each test is about one that an operation would follow for ever. A repair returns the entries.
class circle_in_wb_tree : public damaged_wb_tree {
 protected:
  static constexpr std::uint64_t no_key = 0;  // not in the tree

  static std::uint64_t first_key(const parts::node& n) { return n.key_at(n.array()[0]); }
  static std::uint64_t last_key(const parts::node& n) { return n.key_at(n.array()[n.array().count() - 1]); }

  template <class Operation>
  void expect_error(Operation&& operation) {
    auto index = dram_tree::open(memory_);
    EXPECT_THROW(operation(index), error);
  }
  // A repair returns all entries but for `lost`, no others, and reports the damage.
  void expect_back(std::size_t lost = 0) {
    EXPECT_GE(salvaged() + lost, model_.size());
    EXPECT_EQ(reported_, 1U);
    EXPECT_EQ(wrong_, 0U);
  }

  // Adds entries to a leaf.
  void fill(const parts::node& leaf) {
    auto index = dram_tree::open(memory_);
    for (std::uint64_t key = first_key(leaf) + 1; !leaf.array().is_full(); ++key)
      if (index.insert(key, ~key) == outcome::inserted) model_[key] = ~key;
  }

  // A leaf that its parent does not lead to any more, but its left neighbour, which is not full: all of them are under
  // one parent.
  parts::node& leaf_without_a_parent() {
    for (parts::node* const parent : nodes_of_level(1)) {
      const slot_array order = parent->array();
      for (std::size_t rank = 1; rank + 1 < order.count(); ++rank) {
        if (memory_.resolve(parent->child_at(order[rank - 1]))->array().is_full()) continue;
        parent->slots = order.without(rank).word();
        return *memory_.resolve(parent->child_at(order[rank]));
      }
    }
    throw error("no leaf has a neighbour that is not full", "");
  }
  // Not in the tree, and in the range of the leaf.
  static std::uint64_t absent_key_of(const parts::node& leaf) { return last_key(leaf) + 1; }
};

TEST_F(circle_in_wb_tree, of_leaves) {
  const auto leaves = nodes_of_level(0);
  leaves[40]->sibling = memory_.locate(leaves[20]);
  expect_error([](auto& index) {
    std::vector<entry> out(100'000);
    static_cast<void>(index.scan(0, out));
  });
  expect_error([](auto& index) { static_cast<void>(index.size()); });
  expect_error([](auto& index) { index.for_each([](std::uint64_t, std::uint64_t) {}); });
  expect_back();
}

TEST_F(circle_in_wb_tree, of_leaves_on_the_way_of_a_search) {
  const auto leaves = nodes_of_level(0);
  parts::node& leaf = *leaves[40];
  const std::uint64_t key = last_key(leaf);
  leaf.high_key = key;
  for (parts::node* const to : {leaves[40], leaves[20]}) {
    leaf.sibling = memory_.locate(to);
    expect_error([&](auto& index) { static_cast<void>(index.find(key)); });
    expect_error([&](auto& index) { static_cast<void>(index.update(key, 1)); });
    expect_error([&](auto& index) { static_cast<void>(index.erase(key)); });
    expect_error([&](auto& index) { static_cast<void>(index.insert(key, 1)); });
  }
  expect_back(parts::capacity);  // the next leaf: neither the high key nor the link in front of it is right
}

TEST_F(circle_in_wb_tree, of_the_last_leaf_in_a_repair) {
  const auto leaves = nodes_of_level(0);
  leaves.back()->sibling = memory_.locate(leaves[20]);
  expect_back();
}

TEST_F(circle_in_wb_tree, of_a_child_that_leads_up) {
  parts::node& parent = *nodes_of_level(1)[3];
  const slot_array order = parent.array();
  ASSERT_GE(order.count(), 2U);
  const std::uint64_t key = parent.key_at(order[1]);
  for (parts::node* const up : {&parent, &root()}) {
    parent.entries[order[1]].value = memory_.locate(up).word();
    expect_error([&](auto& index) { static_cast<void>(index.find(key)); });
    expect_error([&](auto& index) { static_cast<void>(index.upsert(key, 1)); });
    expect_error([&](auto& index) {
      std::array<std::optional<std::uint64_t>, 1> value;
      index.find_batch(std::array{key}, value);
    });
  }
  expect_back();
}

TEST_F(circle_in_wb_tree, of_the_leftmost_child_that_leads_up) {
  parts::node& parent = *nodes_of_level(1).front();
  parent.entries[parent.array()[0]].value = memory_.locate(&parent).word();
  EXPECT_THROW(static_cast<void>(dram_tree::open(memory_)), error);
  expect_back(parts::capacity);  // its own entries
}

// A search that finds a retired node begins again at the root: it would find this one again.
TEST_F(circle_in_wb_tree, through_a_retired_node_that_is_linked) {
  parts::node& leaf = *nodes_of_level(0)[40];
  const std::uint64_t key = first_key(leaf);
  leaf.slots = leaf.array().on_level(parts::gone_level).word();
  expect_error([&](auto& index) { static_cast<void>(index.find(key)); });
  expect_error([&](auto& index) { static_cast<void>(index.erase(key)); });
  expect_error([&](auto& index) {
    std::vector<entry> out(10);
    static_cast<void>(index.scan(key, out));
  });
  // A repair returns also those that were erased from it.
  EXPECT_EQ(salvaged(), model_.size());
  EXPECT_EQ(reported_, 1U);
}

TEST_F(circle_in_wb_tree, of_retired_nodes) {
  parts::node retired;
  retired.slots = slot_array::empty(parts::gone_level).word();
  retired.next_retired = memory_.locate(&retired);
  nodes_of_level(0).front()->next_retired = memory_.locate(&retired);
  EXPECT_THROW(static_cast<void>(dram_tree::open(memory_)), error);
  EXPECT_EQ(salvaged(), model_.size());
}

// An insert that finds a full leaf makes room below the parent, and begins again: here that is another leaf.
TEST_F(circle_in_wb_tree, of_an_insert_that_makes_room_elsewhere) {
  const parts::node& leaf = leaf_without_a_parent();
  expect_error([&](auto& index) { static_cast<void>(index.load(std::array{entry{absent_key_of(leaf), 1}})); });
  fill(leaf);
  expect_error([&](auto& index) { static_cast<void>(index.insert(absent_key_of(leaf), 1)); });
  expect_back();
}

// The same where the root leads to a leaf that is not the only one.
TEST_F(circle_in_wb_tree, of_an_insert_that_makes_room_in_a_leaf_for_a_root) {
  const auto leaves = nodes_of_level(0);
  fill(*leaves[40]);
  const std::uint64_t key = absent_key_of(*leaves[40]);
  for (parts::node* const to : {leaves.front(), leaves[39]}) {
    ASSERT_FALSE(to->array().is_full());
    memory_.named_root("wb_tree", "wb_tree", 1).word->store(memory_.locate(to).word());
    expect_error([&](auto& index) { static_cast<void>(index.insert(key, 1)); });
  }
}

// Reads an inner node for a leaf, and gives its children as values; further right it would be a circle again.
TEST_F(circle_in_wb_tree, of_a_leaf_that_leads_up) {
  parts::node& leaf = *nodes_of_level(0)[40];
  leaf.sibling = memory_.locate(nodes_of_level(1).back());
  expect_error([](auto& index) {
    std::vector<entry> out(100'000);
    static_cast<void>(index.scan(0, out));
  });
  expect_error([](auto& index) { static_cast<void>(index.size()); });
  expect_back();
}

// Ranges are read in parts, each from behind the last key of the one before: here this is the least one.
TEST_F(circle_in_wb_tree, of_a_range_with_a_key_that_is_out_of_order) {
  constexpr std::size_t entries_of_part = 64;
  std::size_t before = 0;
  for (parts::node* const leaf : nodes_of_level(0)) {
    const slot_array order = leaf->array();
    if (before + order.count() >= entries_of_part) {
      leaf->entries[order[entries_of_part - before - 1]].key = no_key;
      break;
    }
    before += order.count();
  }
  expect_error([](auto& index) { index.for_each_in(0, ~std::uint64_t{0}, [](std::uint64_t, std::uint64_t) {}); });
  expect_back(1);
}

}  // namespace
}  // namespace pmlab::tests
