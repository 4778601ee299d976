// Tests of trees whose leaves split, empty and are joined at known keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "support/comparison.hpp"
#include "support/differential.hpp"
#include "support/medium_under_test.hpp"
#include "support/message_of.hpp"
#include "support/operations.hpp"

namespace pmlab::tests {

// `Capacity`: entries of a leaf. Ascending inserts leave full leaves behind.
template <class Setting, std::size_t Capacity>
class leaf_tree_test : public testing::Test {
 protected:
  using index_type = typename Setting::index;
  static constexpr std::uint64_t capacity = Capacity;
  // The greatest key of the first leaf after `fill`, and the distance to that of the next one.
  static constexpr std::uint64_t leaf_of_keys = 10 * capacity;

  // Keys 10, 20, ...: enough for `leaves` full ones.
  static void fill(index_type& index, contents& model, std::uint64_t leaves) {
    for (std::uint64_t n = 1; n <= leaves * capacity; ++n) {
      ASSERT_EQ(index.insert(10 * n, n), indexes::outcome::inserted);
      model[10 * n] = n;
    }
  }
  static void erase(index_type& index, contents& model, std::uint64_t first, std::uint64_t last) {
    for (std::uint64_t key = first; key <= last; key += 10) {
      ASSERT_EQ(index.erase(key), model.erase(key) == 1 ? indexes::outcome::erased : indexes::outcome::absent);
      ASSERT_TRUE(index.check().ok()) << index.check().violations.front();
    }
    ASSERT_EQ(compare_all(index, model), "");
  }

  // Empties leaves from the left, from the right, and those between others. `fewest`: nodes of an empty tree.
  void expect_emptied_leaves_to_go(std::uint64_t fewest) {
    const std::vector<std::vector<std::uint64_t>> orders = {{1, 2, 3, 4, 5}, {6, 5, 4, 3, 2}, {3, 5, 4}};
    for (std::size_t order = 0; order < orders.size(); ++order) {
      auto index = index_type::open(*under_.medium, "tree" + std::to_string(order));
      contents model;
      fill(index, model, 6);
      const auto nodes = index.stats().nodes;
      for (const std::uint64_t n : orders[order]) erase(index, model, leaf_of_keys * (n - 1) + 10, leaf_of_keys * n);
      EXPECT_LE(index.stats().nodes, nodes - 3);
      erase(index, model, 10, 6 * leaf_of_keys);
      EXPECT_EQ(index.stats().nodes, fewest);
      fill(index, model, 6);
      EXPECT_EQ(compare_all(index, model), "");
    }
  }

  // Inserts `count` random keys, and erases all of them but one in `one_in`. The bytes in the medium between the two.
  static std::uint64_t fill_and_thin_out(index_type& index, contents& model, random& source, std::size_t count,
                                         std::uint64_t one_in) {
    const std::vector<std::uint64_t> keys = make_keys(key_set::anywhere, count, source);
    for (const std::uint64_t key : keys) {
      EXPECT_EQ(index.insert(key, ~key), indexes::outcome::inserted);
      model[key] = ~key;
    }
    const std::uint64_t bytes = index.stats().medium_bytes;
    for (const std::uint64_t key : keys) {
      if (source.one_in(one_in)) continue;
      EXPECT_EQ(index.erase(key), indexes::outcome::erased);
      model.erase(key);
    }
    expect_sound(index, model);
    return bytes;
  }

  // Fills and empties the tree `cycles` times; `bytes_of(stats)` never grow. `fewest`: nodes of an empty tree.
  template <class Bytes>
  void expect_leaves_to_be_used_again(int cycles, std::uint64_t fewest, Bytes&& bytes_of) {
    auto index = index_type::open(*under_.medium);
    std::uint64_t bytes = 0;
    for (int cycle = 0; cycle < cycles; ++cycle) {
      constexpr std::uint64_t keys = 5000;
      constexpr std::uint64_t step = 7919;  // has no factor in common with `keys`
      for (std::uint64_t n = 0; n < keys; ++n) ASSERT_EQ(index.insert(n * step % keys, n), indexes::outcome::inserted);
      if (cycle == 0) bytes = bytes_of(index.stats());
      for (std::uint64_t n = 0; n < keys; ++n) ASSERT_EQ(index.erase(n), indexes::outcome::erased);
    }
    EXPECT_EQ(index.stats().nodes, fewest);
    EXPECT_LE(bytes_of(index.stats()), bytes);
    EXPECT_TRUE(index.check().ok());
  }

  // The links of leaves that splits made, in every order, are all that there is; no lock is found held.
  void expect_any_number_of_threads_to_find_every_leaf(std::string_view name) {
    contents model;
    {
      auto index = index_type::open(*under_.medium);
      ASSERT_EQ(run_differential(index, model, {.operations = 60'000, .key_count = 40'000}), "");
    }
    for (const unsigned threads : {1U, 2U, 3U, 64U, 0U}) {
      under_.reopen();
      auto index = index_type::open(*under_.medium, name, threads);
      ASSERT_EQ(compare_all(index, model), "") << threads << " threads";
      ASSERT_TRUE(index.check().ok());
      ASSERT_EQ(run_differential(index, model, {.seed = threads + 7, .operations = 2000, .key_count = 40'000}), "");
    }
  }

  static void expect_sound(index_type& index, const contents& model) {
    const indexes::check_report report = index.check();
    ASSERT_TRUE(report.ok()) << report.violations.front();
    ASSERT_EQ(report.entries, model.size());
    ASSERT_EQ(compare_all(index, model), "");
  }
  // And goes on to work.
  static void expect_sound_and_working(index_type& index, contents& model, std::uint64_t seed) {
    expect_sound(index, model);
    EXPECT_EQ(run_differential(index, model, {.seed = seed, .operations = 3000, .key_count = 3000}), "");
  }

  medium_under_test<typename Setting::medium> under_;
};

// A tree whose words in the medium are overwritten; it has the name of its layout.
template <class Index>
class overwritten_tree : public testing::Test {
 protected:
  // Keys 2, 4, ...
  void fill(std::uint64_t entries) {
    auto index = Index::open(*under_.medium);
    for (std::uint64_t n = 1; n <= entries; ++n) {
      ASSERT_EQ(index.insert(2 * n, ~n), indexes::outcome::inserted);
      model_[2 * n] = ~n;
    }
  }

  [[nodiscard]] std::uint64_t root_word() {
    return under_.medium->named_root(Index::layout_name, Index::layout_name, 1).word->load();
  }

  // The error of opening; empty: it opens.
  [[nodiscard]] std::string refusal() {
    return message_of([&] { static_cast<void>(Index::open(*under_.medium)); });
  }
  // The entries of a salvage; the first of each key counts.
  [[nodiscard]] contents salvaged() {
    contents found;
    const std::string damage = message_of([&] {
      Index::salvage(*under_.medium, Index::layout_name,
                     [&](std::uint64_t key, std::uint64_t value) { found.emplace(key, value); });
    });
    if (!damage.empty()) std::printf("  %s\n", damage.c_str());
    return found;
  }
  void expect_refused_and_all_salvaged(const std::string& why) {
    EXPECT_PRED2(says, refusal(), why);
    EXPECT_EQ(salvaged(), model_);
  }

  medium_under_test<restartable_medium> under_;
  contents model_;
};

}  // namespace pmlab::tests
