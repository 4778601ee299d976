// The wB+-tree's own behaviour: the word that sorts a node, splits and joins at every level, and overwritten nodes.
#include <pmlab/base/error.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/wb_tree.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/campaign.hpp"
#include "support/comparison.hpp"
#include "support/crash_medium.hpp"
#include "support/crash_scenario.hpp"
#include "support/differential.hpp"
#include "support/leaf_tree.hpp"
#include "support/operations.hpp"
#include "support/settings.hpp"

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
                   setting<kind<indexes::wb_tree>, crash_medium>>;
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

// ---- crashes ----

// The tree has three levels; its leaves and their parents are split and joined, roots are added and removed.
TEST(wb_tree_crash, F3_F4_in_splits_and_joins_of_leaves_and_inner_nodes) {
  for (const std::uint64_t seed : seeds(2)) {
    crash_options options;
    options.seed = seed;
    options.keys = key_set::dense;
    options.key_count = 500;
    options.preload = 150;
    options.operations = 4000;
    options.mix = {.insert = 45, .update = 2, .upsert = 5, .erase = 45};
    options.only_around_changes_of_shape = true;
    options.nodes_are_shape = true;
    options.images_in_all = 12'000;
    crash_medium medium;
    using tree = indexes::wb_tree<crash_medium>;
    const crash_result result = crash_scenario<tree, tree, crash_medium>(options).run(medium);
    EXPECT_EQ(result.violation, "") << "replay: " << replay_command(seed);
    EXPECT_GE(result.changes_of_shape, 25U);
    std::printf("  %s\n", result.describe().c_str());
  }
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

  // The first node of each level, one in the middle, and the last one.
  std::vector<parts::node*> nodes() {
    std::vector<parts::node*> some;
    const auto root = memory_.named_root("wb_tree", "wb_tree", 1).word->load();
    parts::node* first = memory_.resolve(media::pointer<parts::node>(root));
    for (;;) {
      std::vector<parts::node*> level{first};
      while (const auto next = level.back()->sibling.load()) level.push_back(memory_.resolve(next));
      for (parts::node* n : {level.front(), level[level.size() / 2], level.back()})
        if (std::count(some.begin(), some.end(), n) == 0) some.push_back(n);
      if (first->array().level() == 0) return some;
      first = memory_.resolve(first->child_at(first->array()[0]));
    }
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
        back += known != model_.end() && known->second == value ? 1 : 0;
      });
    } catch (const error&) {
      ++reported_;
    }
    return back;
  }

  media::dram memory_;
  contents model_;
  std::size_t refused_ = 0;
  std::size_t reported_ = 0;
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

}  // namespace
}  // namespace pmlab::tests
