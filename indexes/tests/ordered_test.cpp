// Scans, one thread: lengths, bounds, order, and scans after deletes.
#include <pmlab/indexes/index.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/comparison.hpp"
#include "support/medium_under_test.hpp"
#include "support/operations.hpp"
#include "support/settings.hpp"

namespace pmlab::tests::ordered_test {
namespace {

using indexes::outcome;

constexpr std::uint64_t top = ~std::uint64_t{0};

template <class Setting>
class ordered : public testing::Test {
 protected:
  using index_type = typename Setting::index;
  index_type open() { return index_type::open(*under_.medium); }

  medium_under_test<typename Setting::medium> under_;
};

TYPED_TEST_SUITE(ordered, ordered_settings, setting_name);

// Scans and ranges from, and around, every entry and the ends of the key space.
template <class Index>
std::string compare_scans(Index& index, const contents& model) {
  std::vector<std::uint64_t> from = {0, 1, top / 2, top - 1, top};
  for (const auto& [key, value] : model)
    for (const std::uint64_t near : {key - 1, key, key + 1}) from.push_back(near);
  for (const std::uint64_t key : from) {
    for (const std::size_t length : {0U, 1U, 2U, 17U, 100U})
      if (std::string wrong = compare_scan(index, model, key, length); !wrong.empty()) return wrong;
    for (const std::uint64_t last : {key - 1, key, key + 40, top})
      if (last == top || last - key < 100)
        if (std::string wrong = compare_range(index, model, key, last); !wrong.empty()) return wrong;
  }
  return compare_all(index, model);
}

TYPED_TEST(ordered, an_empty_index_scans_nothing) {
  auto index = this->open();
  EXPECT_EQ(compare_scans(index, {}), "");
  ASSERT_EQ(index.insert(9, 9), outcome::inserted);
  ASSERT_EQ(index.erase(9), outcome::erased);
  EXPECT_EQ(compare_scans(index, {}), "");
}

TYPED_TEST(ordered, scans_of_every_length_from_everywhere) {
  auto index = this->open();
  contents model;
  for (std::uint64_t i = 0; i < 400; ++i) {
    const std::uint64_t key = i * 7 % 400 * 3;
    ASSERT_EQ(index.insert(key, i), outcome::inserted);
    model[key] = i;
  }
  EXPECT_EQ(compare_scans(index, model), "");
}

// A scan that ends at 2^64 - 1 ends, and compares keys as unsigned numbers.
TYPED_TEST(ordered, scans_cross_the_sign_bit_and_end_at_the_last_key) {
  auto index = this->open();
  contents model;
  random source(2);
  for (const std::uint64_t key : make_keys(key_set::extremes, 600, source)) {
    ASSERT_EQ(index.insert(key, ~key), outcome::inserted);
    model[key] = ~key;
  }
  EXPECT_EQ(compare_scans(index, model), "");
}

// F17, F12: after a delete in a node (its direction counter is odd, then even again) scans return the remaining
// entries.
TYPED_TEST(ordered, F17_F12_scans_after_every_delete) {
  auto index = this->open();
  contents model;
  for (std::uint64_t key = 0; key < 120; ++key) {
    ASSERT_EQ(index.insert(key * 2, key), outcome::inserted);
    model[key * 2] = key;
  }
  random source(4);
  while (!model.empty()) {
    auto victim = model.lower_bound(source.below(240));
    if (victim == model.end()) victim = model.begin();
    ASSERT_EQ(index.erase(victim->first), outcome::erased);
    model.erase(victim);
    ASSERT_EQ(compare_scan(index, model, 0, 200), "");
    ASSERT_EQ(compare_scan(index, model, source.below(240), 20), "");
    if (source.one_in(3)) {
      const std::uint64_t key = source.below(240);
      ASSERT_EQ(index.insert(key, 7), model.contains(key) ? outcome::exists : outcome::inserted);
      model.emplace(key, 7);
      ASSERT_EQ(compare_scan(index, model, 0, 200), "");
      if (source.one_in(2) && model.size() > 1) {
        ASSERT_EQ(index.erase(model.rbegin()->first), outcome::erased);
        model.erase(std::prev(model.end()));
      }
    }
  }
  EXPECT_EQ(compare_scans(index, model), "");
}

// F12: nodes that deletes emptied, in a row, are walked over.
TYPED_TEST(ordered, F12_scans_walk_over_emptied_nodes) {
  auto index = this->open();
  contents model;
  for (std::uint64_t key = 0; key < 5000; ++key) {
    ASSERT_EQ(index.insert(key, key), outcome::inserted);
    model[key] = key;
  }
  for (std::uint64_t key = 100; key < 4900; ++key) {
    ASSERT_EQ(index.erase(key), outcome::erased);
    model.erase(key);
  }
  ASSERT_EQ(compare_scan(index, model, 0, 300), "");
  ASSERT_EQ(compare_scans(index, model), "");
  for (std::uint64_t key = 4899; key >= 100; key -= 3) {
    ASSERT_EQ(index.insert(key, 1), outcome::inserted);
    model[key] = 1;
  }
  EXPECT_EQ(compare_all(index, model), "");
}

TYPED_TEST(ordered, ranges_include_both_ends) {
  auto index = this->open();
  contents model;
  for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{10}, std::uint64_t{20}, top}) {
    ASSERT_EQ(index.insert(key, key), outcome::inserted);
    model[key] = key;
  }
  for (const auto& [first, last] :
       {std::pair<std::uint64_t, std::uint64_t>{0, 0}, {10, 10}, {10, 20}, {11, 19}, {20, top}, {top, top}, {20, 10}})
    EXPECT_EQ(compare_range(index, model, first, last), "");
}

}  // namespace
}  // namespace pmlab::tests::ordered_test
