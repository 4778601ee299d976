// Tests of trees whose leaves split, empty and are joined at known keys.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/comparison.hpp"
#include "support/differential.hpp"
#include "support/medium_under_test.hpp"
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

}  // namespace pmlab::tests
