// Point operations, one thread: every operation, key and value, on every index and medium.
#include <pmlab/indexes/index.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/comparison.hpp"
#include "support/medium_under_test.hpp"
#include "support/operations.hpp"
#include "support/settings.hpp"

namespace pmlab::tests::point_test {
namespace {

using indexes::outcome;

constexpr std::uint64_t top = ~std::uint64_t{0};
constexpr std::uint64_t middle = std::uint64_t{1} << 63;
const std::vector<std::uint64_t> extremes = {0, 1, 2, middle - 1, middle, middle + 1, top - 1, top};

template <class Setting>
class point : public testing::Test {
 protected:
  using index_type = typename Setting::index;
  index_type open() { return index_type::open(*under_.medium); }

  medium_under_test<typename Setting::medium> under_;
};

TYPED_TEST_SUITE(point, all_settings, setting_name);

// C15: delete and update exist, duplicates are rejected, and every operation returns its outcome.
TYPED_TEST(point, C15_every_operation_says_what_it_did) {
  auto index = this->open();
  EXPECT_EQ(index.find(7), std::nullopt);
  EXPECT_EQ(index.update(7, 1), outcome::absent);
  EXPECT_EQ(index.erase(7), outcome::absent);
  EXPECT_EQ(index.insert(7, 1), outcome::inserted);
  EXPECT_EQ(index.insert(7, 2), outcome::exists);
  EXPECT_EQ(index.find(7), 1U);
  EXPECT_EQ(index.update(7, 3), outcome::updated);
  EXPECT_EQ(index.find(7), 3U);
  EXPECT_EQ(index.upsert(7, 4), outcome::updated);
  EXPECT_EQ(index.upsert(8, 5), outcome::inserted);
  EXPECT_EQ(compare_all(index, {{7, 4}, {8, 5}}), "");
  EXPECT_EQ(index.erase(7), outcome::erased);
  EXPECT_EQ(index.erase(7), outcome::absent);
  EXPECT_EQ(index.find(7), std::nullopt);
  EXPECT_EQ(index.insert(7, 6), outcome::inserted);
  EXPECT_EQ(compare_all(index, {{7, 6}, {8, 5}}), "");
}

TYPED_TEST(point, an_empty_index_answers) {
  auto index = this->open();
  EXPECT_EQ(compare_all(index, {}), "");
  EXPECT_EQ(index.stats().entries, 0U);
  for (const std::uint64_t key : extremes) {
    EXPECT_EQ(index.find(key), std::nullopt);
    EXPECT_EQ(index.erase(key), outcome::absent);
  }
}

// F8: every key with every value, 0 and 2^64 - 1 included.
TYPED_TEST(point, F8_every_extreme_key_holds_every_extreme_value) {
  auto index = this->open();
  for (const std::uint64_t value : extremes) {
    contents model;
    for (const std::uint64_t key : extremes) {
      ASSERT_EQ(index.insert(key, value), outcome::inserted) << key;
      model[key] = value;
    }
    ASSERT_EQ(compare_all(index, model), "") << "value " << value;
    for (const std::uint64_t key : extremes) {
      ASSERT_EQ(index.update(key, ~value), outcome::updated);
      ASSERT_EQ(index.find(key), ~value);
    }
    for (const std::uint64_t key : extremes) ASSERT_EQ(index.erase(key), outcome::erased) << key;
    ASSERT_EQ(compare_all(index, {}), "");
  }
}

// F8: neighbours whose values are equal, or equal to a neighbour's key, look like no state but the one that they are.
TYPED_TEST(point, F8_equal_neighbouring_values_stay_apart) {
  auto index = this->open();
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{5}, top}) {
    contents model;
    for (std::uint64_t key = 0; key < 300; ++key) {
      ASSERT_EQ(index.insert(key, value), outcome::inserted);
      model[key] = value;
    }
    ASSERT_EQ(compare_all(index, model), "");
    for (std::uint64_t key = 0; key < 300; key += 2) {
      ASSERT_EQ(index.erase(key), outcome::erased);
      model.erase(key);
    }
    ASSERT_EQ(compare_all(index, model), "");
    for (std::uint64_t key = 1; key < 300; key += 2) {
      ASSERT_EQ(index.update(key, key - 1), outcome::updated);
      model[key] = key - 1;
    }
    ASSERT_EQ(compare_all(index, model), "");
    for (std::uint64_t key = 1; key < 300; key += 2) ASSERT_EQ(index.erase(key), outcome::erased);
  }
}

// C7: duplicates are rejected and change nothing, however many there are.
TYPED_TEST(point, C7_inserting_one_key_a_million_times_does_not_grow_the_index) {
  auto index = this->open();
  ASSERT_EQ(index.insert(42, 1), outcome::inserted);
  const auto bytes = index.stats().medium_bytes;
  for (std::uint64_t i = 0; i < 1'000'000; ++i) ASSERT_EQ(index.insert(42, i + 2), outcome::exists);
  EXPECT_EQ(index.stats().medium_bytes, bytes);
  EXPECT_EQ(compare_all(index, {{42, 1}}), "");
}

// Inserting, erasing or changing one key repeatedly needs no new space.
TYPED_TEST(point, C7_one_key_in_and_out_does_not_grow_the_index) {
  auto index = this->open();
  ASSERT_EQ(index.insert(1, 1), outcome::inserted);
  ASSERT_EQ(index.insert(42, 1), outcome::inserted);
  const auto bytes = index.stats().medium_bytes;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    ASSERT_EQ(index.erase(42), outcome::erased);
    ASSERT_EQ(index.insert(42, i), outcome::inserted);
    ASSERT_EQ(index.upsert(42, i + 1), outcome::updated);
  }
#if defined(PMLAB_TESTS_OF_STRINGS)
  // Erased keys and values wait for readers, two batches of them.
  EXPECT_LT(index.stats().medium_bytes, bytes + (std::uint64_t{128} << 10));
#else
  EXPECT_EQ(index.stats().medium_bytes, bytes);
#endif
}

// F13: erasing a key that is not there ends, wherever it would be.
TYPED_TEST(point, F13_erasing_absent_keys_anywhere_ends_and_changes_nothing) {
  auto index = this->open();
  contents model;
  for (std::uint64_t key = 10; key < 20'000; key += 10) {
    ASSERT_EQ(index.insert(key, key), outcome::inserted);
    model[key] = key;
  }
  for (std::uint64_t key = 0; key < 20'020; ++key)
    if (key % 10 != 0 || key == 0 || key >= 20'000) {
      ASSERT_EQ(index.erase(key), outcome::absent) << key;
      ASSERT_EQ(index.update(key, 1), outcome::absent) << key;
    }
  EXPECT_EQ(compare_all(index, model), "");
}

// F16: no key is lost or invented through many changes of shape.
TYPED_TEST(point, F16_every_key_is_there_after_many_splits) {
  auto index = this->open();
  for (const key_set kind : all_key_sets) {
    random source(11);
    contents model;
    for (const std::uint64_t key : make_keys(kind, 6000, source)) {
      ASSERT_EQ(index.upsert(key, key ^ 1), model.contains(key) ? outcome::updated : outcome::inserted);
      model[key] = key ^ 1;
    }
    ASSERT_EQ(compare_all(index, model), "") << to_string(kind);
    std::size_t left = model.size();
    for (auto at = model.begin(); at != model.end(); at = model.erase(at), --left) {
      ASSERT_EQ(index.erase(at->first), outcome::erased);
      if (left % 2000 == 0) {
        contents rest(std::next(at), model.end());
        ASSERT_EQ(compare_all(index, rest), "") << to_string(kind) << ", " << left << " keys left";
      }
    }
    ASSERT_EQ(compare_all(index, {}), "") << to_string(kind);
  }
}

TYPED_TEST(point, find_batch_says_what_find_says) {
  auto index = this->open();
  random source(3);
  std::vector<std::uint64_t> keys = extremes;
  for (int i = 0; i < 3000; ++i) keys.push_back(source.next());
  for (const std::uint64_t key : keys) ASSERT_EQ(index.insert(key, ~key), outcome::inserted);
  for (std::size_t width = 0; width < 70; ++width) {
    std::vector<std::uint64_t> asked(width);
    for (std::uint64_t& key : asked) key = source.one_in(3) ? source.next() : keys[source.below(keys.size())];
    if (width > 2) asked[1] = asked[0];
    std::vector<std::optional<std::uint64_t>> got(width, 1U);
    index.find_batch(asked, got);
    for (std::size_t i = 0; i < width; ++i) EXPECT_EQ(got[i], index.find(asked[i])) << "width " << width;
  }
}

TYPED_TEST(point, stats_describe_what_is_there) {
  auto index = this->open();
  random source(5);
  const std::vector<std::uint64_t> keys = make_keys(key_set::anywhere, 30'000, source);
  for (const std::uint64_t key : keys) ASSERT_EQ(index.insert(key, 1), outcome::inserted);
  const indexes::index_stats shape = index.stats();
  EXPECT_EQ(shape.entries, keys.size());
  EXPECT_EQ(index.size(), keys.size());
  EXPECT_GT(shape.nodes, 0U);
  EXPECT_GE(shape.depth, 1U);
  EXPECT_GT(shape.load_factor, 0.2);
  EXPECT_LE(shape.load_factor, 1.0);
  EXPECT_GE(shape.medium_bytes, keys.size() * 16);
  EXPECT_LE(shape.medium_bytes, this->under_.medium->used().allocated_bytes);
}

}  // namespace
}  // namespace pmlab::tests::point_test
