// Keys and values of a program's own types: their order, and results of an index of them.
#include <pmlab/base/error.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/indexes/fp_tree.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/strings/typed_index.hpp>

#include <cmath>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/campaign.hpp"
#include "support/operations.hpp"

namespace pmlab::tests::typed_index_test {
namespace {

using indexes::outcome;
using media::dram;
using strings::key_pair;
using strings::key_traits;
using strings::typed_index;

enum class color : std::int8_t { red = -1, green = 0, blue = 1 };

struct order_id {
  std::uint64_t number;
  friend auto operator<=>(const order_id&, const order_id&) = default;
};

// Three words, so that half of a value is noticed.
struct order {
  std::uint64_t a = 0;
  std::uint64_t b = 0;
  std::uint64_t c = 0;
  explicit order(std::uint64_t n) noexcept : a(n), b(n * 3), c(~n) {}
  friend bool operator==(const order&, const order&) = default;
};
static_assert(!std::is_default_constructible_v<order>);

struct no_key {
  std::string text;
};
static_assert(!strings::typed_key<no_key> && !strings::typed_key<key_pair<double, char>> &&
              !strings::typed_key<long double> && strings::typed_key<key_pair<float, unsigned>>);

// ---- order ----

template <class K>
void expect_order(const std::vector<K>& ascending) {
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    const std::uint64_t word = key_traits<K>::to_word(ascending[i]);
    EXPECT_EQ(key_traits<K>::to_word(key_traits<K>::from_word(word)), word) << i;
    if constexpr (key_traits<K>::bits < 64) {
      EXPECT_EQ(word >> key_traits<K>::bits, 0U) << i;
    }
    if (i > 0) {
      EXPECT_LT(key_traits<K>::to_word(ascending[i - 1]), word) << i;
    }
  }
}

template <class K>
std::vector<K> limits() {
  using limit = std::numeric_limits<K>;
  return {limit::min(), static_cast<K>(limit::min() + 1), K{0}, K{1}, static_cast<K>(limit::max() - 1), limit::max()};
}

TEST(typed_key, words_have_the_order_of_keys) {
  expect_order(limits<std::int8_t>());
  expect_order(limits<std::int32_t>());
  expect_order(limits<std::int64_t>());
  expect_order<std::uint64_t>({0, 1, ~std::uint64_t{0} - 1, ~std::uint64_t{0}});
  expect_order<bool>({false, true});
  expect_order<color>({color::red, color::green, color::blue});
  using real = std::numeric_limits<double>;
  expect_order<double>({-real::quiet_NaN(), -real::infinity(), real::lowest(), -1.5, -real::denorm_min(), -0.0, 0.0,
                        real::denorm_min(), 1.5, real::max(), real::infinity(), real::quiet_NaN()});
  expect_order<float>({-HUGE_VALF, -2.5F, -0.0F, 0.0F, 2.5F, HUGE_VALF});
  expect_order<order_id>({{0}, {1}, {~std::uint64_t{0}}});
  expect_order<key_pair<std::int16_t, float>>({{-5, 7.0F}, {-1, -3.0F}, {-1, 3.0F}, {0, -9.0F}, {2, -9.0F}});
  EXPECT_EQ((key_traits<key_pair<std::int16_t, color>>::kind()), "i2i1");
}

// ---- answers ----

template <class K>
K key_of(std::mt19937_64& random) {
  if constexpr (std::is_same_v<K, double>)
    return (static_cast<double>(random() % 400) - 200.0) / 8;
  else if constexpr (std::is_same_v<K, order_id>)
    return order_id{random() % 2 == 0 ? random() % 300 : ~(random() % 100)};
  else
    return K{static_cast<std::int16_t>(random() % 20 - 10), static_cast<std::uint32_t>(random() % 20)};
}
template <class V>
V value_of(std::uint64_t n) {
  if constexpr (std::is_same_v<V, order>)
    return order(n);
  else
    return static_cast<V>(n % 30000) - 15000;
}

template <class Index>
class typed_indexes : public testing::Test {};
template <class K, class V, template <class...> class Index>
using over = typed_index<K, V, dram, Index<dram>>;
using all_typed = testing::Types<over<double, int, indexes::fp_tree>, over<double, order, indexes::fast_fair>,
                                 over<order_id, order, indexes::cceh>,
                                 over<key_pair<std::int16_t, std::uint32_t>, std::int16_t, indexes::fast_fair>,
                                 over<key_pair<std::int16_t, std::uint32_t>, order, indexes::fast_fair>>;
TYPED_TEST_SUITE(typed_indexes, all_typed);

TYPED_TEST(typed_indexes, answer_as_a_map_does) {
  using K = typename TypeParam::key_type;
  using V = typename TypeParam::value_type;
  for (const std::uint64_t seed : seeds(2)) {
    SCOPED_TRACE("PMLAB_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    dram memory;
    auto index = TypeParam::open(memory, "typed");
    std::map<K, V> model;
    for (std::uint64_t step = 0; step < 3000; ++step) {
      const K key = key_of<K>(random);
      const V value = value_of<V>(step);
      const bool there = model.contains(key);
      switch (random() % 4) {
        case 0:
          ASSERT_EQ(index.insert(key, value), there ? outcome::exists : outcome::inserted);
          model.emplace(key, value);
          break;
        case 1:
          ASSERT_EQ(index.upsert(key, value), there ? outcome::updated : outcome::inserted);
          model.insert_or_assign(key, value);
          break;
        case 2:
          ASSERT_EQ(index.update(key, value), there ? outcome::updated : outcome::absent);
          if (there) model.insert_or_assign(key, value);
          break;
        default: ASSERT_EQ(index.erase(key), there ? outcome::erased : outcome::absent); model.erase(key);
      }
      const auto found = index.find(key);
      ASSERT_EQ(found.has_value(), model.contains(key));
      if (found) {
        ASSERT_EQ(*found, model.at(key));
      }
    }
    EXPECT_EQ(index.size(), model.size());
    EXPECT_TRUE(index.check().ok());
    std::map<K, V> all;
    index.for_each([&](const K& key, const V& value) { all.emplace(key, value); });
    EXPECT_EQ(all, model);
    if constexpr (requires { index.scan(K{}, 1, [](const K&, const V&) {}); })
      for (int round = 0; round < 20; ++round) {
        const K from = key_of<K>(random);
        const K to = key_of<K>(random);
        const std::size_t most = random() % 150;
        std::vector<std::pair<K, V>> expected;
        for (auto i = model.lower_bound(from); i != model.end() && expected.size() < most; ++i) expected.push_back(*i);
        std::vector<std::pair<K, V>> found;
        EXPECT_EQ(index.scan(from, most, [&](const K& k, const V& v) { found.emplace_back(k, v); }), expected.size());
        EXPECT_EQ(found, expected);
        expected.clear();
        found.clear();
        for (auto i = model.lower_bound(from); i != model.end() && i->first <= to; ++i) expected.push_back(*i);
        index.for_each_in(from, to, [&](const K& k, const V& v) { found.emplace_back(k, v); });
        EXPECT_EQ(found, expected);
      }
  }
}

TEST(typed_index, loads_and_scans_to_the_greatest_key) {
  using signed_keys = typed_index<std::int64_t, float, dram, indexes::fp_tree<dram>>;
  dram memory;
  auto index = signed_keys::open(memory, "loaded");
  std::vector<signed_keys::entry> entries;
  for (std::int64_t i = -5000; i < 5000; ++i) entries.push_back({i, static_cast<float>(i)});
  entries.push_back({std::numeric_limits<std::int64_t>::max(), 1});
  EXPECT_EQ(index.load(entries), entries.size());
  std::vector<std::int64_t> keys;
  EXPECT_EQ(index.scan(-70, 200'000, [&](std::int64_t key, float) { keys.push_back(key); }), 5071U);
  EXPECT_EQ(keys.front(), -70);
  EXPECT_EQ(keys.back(), std::numeric_limits<std::int64_t>::max());
}

TEST(typed_index, refuses_other_types_and_names_both) {
  dram memory;
  using tree = indexes::fast_fair<dram>;
  {
    auto index = typed_index<order_id, order, dram, tree>::open(memory, "orders");
    index.insert({1}, order(1));
  }
  const auto refusal = [&](auto tag) {
    try {
      static_cast<void>(decltype(tag)::type::open(memory, "orders"));
    } catch (const error& e) {
      return std::string(e.what());
    }
    return std::string("none");
  };
  const std::string other_key = refusal(std::type_identity<typed_index<std::int64_t, order, dram, tree>>{});
  EXPECT_NE(other_key.find("typed_u8_b24, not typed_i8_b24"), std::string::npos) << other_key;
  const std::string other_value = refusal(std::type_identity<typed_index<order_id, double, dram, tree>>{});
  EXPECT_NE(other_value.find("typed_u8_b24, not typed_u8_f8"), std::string::npos) << other_value;
  auto again = typed_index<order_id, order, dram, tree>::open(memory, "orders");
  EXPECT_EQ(again.find({1}), order(1));
  EXPECT_THROW((typed_index<int, int, dram, tree>::open(memory, "a_name_of_22_character")), error);
}

// The types are noted last: noted first, they would refuse the right ones for ever.
TEST(typed_index, what_does_not_open_gets_no_types) {
  dram memory;
  {
    auto hashed = indexes::cceh<dram>::open(memory, "orders");
    hashed.insert(1, 2);
  }
  EXPECT_THROW((typed_index<std::int64_t, double, dram, indexes::fast_fair<dram>>::open(memory, "orders")), error);
  auto index = typed_index<std::uint64_t, std::uint64_t, dram, indexes::cceh<dram>>::open(memory, "orders");
  EXPECT_EQ(index.find(1), 2U);
}

TEST(typed_index, a_full_medium_changes_nothing_and_can_be_erased_from) {
  dram memory(media::dram_options{.capacity_bytes = std::uint64_t{4} << 20, .huge_pages = false});
  auto index = typed_index<std::int32_t, order, dram, indexes::fast_fair<dram>>::open(memory, "full");
  std::int32_t count = 0;
  while (index.insert(count, order(static_cast<std::uint64_t>(count))) == outcome::inserted) ++count;
  ASSERT_GT(count, 1000);
  EXPECT_FALSE(index.find(count));
  for (std::int32_t key = 0; key < count; ++key) ASSERT_EQ(index.find(key), order(static_cast<std::uint64_t>(key)));
  for (std::int32_t key = 0; key < 100; ++key) ASSERT_EQ(index.erase(key), outcome::erased);
  EXPECT_EQ(index.insert(-1, order(7)), outcome::inserted);
  EXPECT_TRUE(index.check().ok());
}

}  // namespace
}  // namespace pmlab::tests::typed_index_test
