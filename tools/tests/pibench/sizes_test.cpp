// The libraries for PiBench with keys and values of other sizes than 8 bytes: their results, their contents, their
// order.
#include <pmlab/pibench/tree_api.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tools/tests/pibench/loaded.hpp"
#include "tools/tests/pibench/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pmlab::tests {
namespace {

using sizes = std::pair<std::size_t, std::size_t>;  // bytes of a key, of a value

std::uint64_t integer(const std::string& key) {
  std::uint64_t word;
  std::memcpy(&word, key.data(), sizeof word);
  return word;
}

// Keys of 8 bytes come in the order of this machine's integers, others in that of their bytes.
struct in_order {
  bool operator()(const std::string& a, const std::string& b) const {
    return a.size() == sizeof(std::uint64_t) ? integer(a) < integer(b) : a < b;
  }
};
using contents = std::map<std::string, std::string, in_order>;

std::string bytes(std::mt19937_64& random, std::size_t size) {
  std::string text(size, '\0');
  // Few different first bytes, and zeros among them, so that keys share beginnings.
  for (char& c : text) c = static_cast<char>(random() % 3 == 0 ? random() : random() % 2);
  return text;
}

class libraries_of_bytes : public testing::TestWithParam<std::tuple<std::string, sizes>> {
 protected:
  [[nodiscard]] static std::string name() { return std::get<0>(GetParam()); }
  static tree_options_t sized(tree_options_t options) {
    std::tie(options.key_size, options.value_size) = std::get<1>(GetParam());
    return options;
  }

  static void agree_with_a_map(tree_of_bytes& t, contents& expected, unsigned seed) {
    const auto [key_size, value_size] = std::get<1>(GetParam());
    std::mt19937_64 random(seed);
    std::vector<std::string> keys;
    while (keys.size() < 600) keys.push_back(bytes(random, key_size));
    for (int i = 0; i < 5'000; ++i) {
      const std::string& key = keys[random() % keys.size()];
      const std::string value = bytes(random, value_size);
      const bool there = expected.contains(key);
      switch (random() % 4) {
        case 0:
          ASSERT_EQ(t.insert(key, value), !there);
          expected.try_emplace(key, value);
          break;
        case 1:
          ASSERT_EQ(t.update(key, value), there);
          if (there) expected[key] = value;
          break;
        case 2:
          if (i % 3 != 0) break;
          ASSERT_EQ(t.remove(key), there);
          expected.erase(key);
          break;
        default: ASSERT_EQ(t.find(key), there ? std::optional(expected[key]) : std::nullopt);
      }
    }
    ASSERT_GT(expected.size(), 100U);
  }

  static void hold_the_same(tree_of_bytes& t, const contents& expected) {
    for (const auto& [key, value] : expected) ASSERT_EQ(t.find(key), value);
    if (!has_order(name()) || expected.empty()) return;
    const auto least = expected.begin();
    ASSERT_EQ(t.scan(least->first, 1 << 20), tree_of_bytes::records(expected.begin(), expected.end()));
    const auto middle = std::next(least, static_cast<long>(expected.size() / 2));
    ASSERT_EQ(t.scan(middle->first, 10), tree_of_bytes::records(middle, std::next(middle, 10)));
  }

  temporary_folder folder_;
};

std::string name_of(const testing::TestParamInfo<std::tuple<std::string, sizes>>& test) {
  const auto& [library, size] = test.param;
  return library + "_" + std::to_string(size.first) + "_" + std::to_string(size.second);
}

INSTANTIATE_TEST_SUITE_P(pibench, libraries_of_bytes,
                         testing::Combine(testing::ValuesIn(library_names()),
                                          testing::Values(sizes(32, 8), sizes(8, 100), sizes(3, 0), sizes(100, 2000))),
                         name_of);

TEST_P(libraries_of_bytes, answer_in_dram) {
  tree_of_bytes t(name(), sized({}));
  contents expected;
  ASSERT_NO_FATAL_FAILURE(agree_with_a_map(t, expected, 1));
  hold_the_same(t, expected);
}

TEST_P(libraries_of_bytes, keep_a_pool_from_one_run_to_the_next) {
  contents expected;
  for (unsigned run = 0; run < 3; ++run) {
    tree_of_bytes t(name(), sized(pool_at(folder_.file("pool"))));
    ASSERT_NO_FATAL_FAILURE(hold_the_same(t, expected)) << "run " << run;
    ASSERT_NO_FATAL_FAILURE(agree_with_a_map(t, expected, run)) << "run " << run;
  }
}

class sizes_of : public testing::TestWithParam<std::string> {
 protected:
  static tree_options_t sized(tree_options_t options, std::size_t key_size, std::size_t value_size) {
    options.key_size = key_size;
    options.value_size = value_size;
    return options;
  }
  temporary_folder folder_;
};

INSTANTIATE_TEST_SUITE_P(pibench, sizes_of, testing::ValuesIn(library_names()),
                         [](const auto& library) { return library.param; });

TEST_P(sizes_of, keys_and_values_have_limits) {
  const auto refusal = [](std::size_t key_size, std::size_t value_size) {
    return message_of([&] { tree_of_bytes(GetParam(), sized({}, key_size, value_size)); });
  };
  EXPECT_EQ(refusal(0, 8), "there are no keys of 0 bytes; give --key_size 1 to 65536");
  EXPECT_EQ(refusal(65'537, 8), "there are no keys of 65537 bytes; give --key_size 1 to 65536");
  EXPECT_EQ(refusal(8, 1'048'577), "there are no values of 1048577 bytes; give --value_size 0 to 1048576");
  tree_of_bytes most(GetParam(), sized({}, 65'536, 1'048'576));
  const std::string key(65'536, 'k');
  const std::string value(1'048'576, 'v');
  EXPECT_TRUE(most.insert(key, value));
  EXPECT_EQ(most.find(key), value);
}

TEST_P(sizes_of, a_pool_are_not_taken_for_others) {
  const tree_options_t pool = pool_at(folder_.file("pool"));
  const std::string key(16, 'k');
  { ASSERT_TRUE(tree_of_bytes(GetParam(), sized(pool, 16, 100)).insert(key, std::string(100, 'v'))); }
  EXPECT_EQ(message_of([&] { static_cast<void>(tree_of_bytes(GetParam(), sized(pool, 16, 50)).find(key)); }),
            "pmem:" + pool.pool_path + " holds values of 100 bytes, not 50; give --value_size 100, or a new pool");
  EXPECT_NE(message_of([&] { tree_of_bytes(GetParam(), sized(pool, 16, 8)); }).find("of layout strings"),
            std::string::npos);
  // Words have a root of their own.
  { ASSERT_TRUE(tree_of_bytes(GetParam(), pool).insert(std::string(8, 'k'), std::string(8, 'v'))); }
  { ASSERT_EQ(tree_of_bytes(GetParam(), sized(pool, 16, 100)).find(key), std::string(100, 'v')); }
  if (!has_order(GetParam())) return;
  tree_of_bytes other(GetParam(), sized(pool, 5, 100));
  EXPECT_NE(message_of([&] { static_cast<void>(other.scan(std::string(5, 'a'), 10)); }).find("keys of 16 bytes, not 5"),
            std::string::npos);
}

}  // namespace
}  // namespace pmlab::tests
