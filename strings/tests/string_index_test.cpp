// String keys: kinds of keys and values, the cost of comparisons, and reclaimed space.
#include <pmlab/base/error.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/indexes/fp_tree.hpp>
#include <pmlab/indexes/level_hashing.hpp>
#include <pmlab/indexes/skip_list.hpp>
#include <pmlab/indexes/woart.hpp>
#include <pmlab/media/counted.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/strings/string_index.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/campaign.hpp"
#include "support/forwarding_index.hpp"
#include "support/medium_under_test.hpp"
#include "support/operations.hpp"
#include "support/watchdog.hpp"

namespace pmlab::tests::string_index_test {
namespace {

using indexes::outcome;
using strings::blob_values;
using strings::string_index;
using strings::word_values;

// So few hashes that every chain is long.
struct few_hashes {
  std::uint64_t operator()(std::string_view key) const noexcept { return strings::detail::hash_of(key) % 40; }
};

template <class Medium, template <class...> class Index, class Values, class Hash = strings::detail::key_hash>
using over = string_index<Medium, Index<Medium>, Values, Hash>;

template <class T>
class string_indexes : public testing::Test {};
using all = testing::Types<over<media::dram, indexes::cceh, word_values>,                       //
                           over<media::dram, indexes::cceh, blob_values, few_hashes>,           //
                           over<media::dram, indexes::level_hashing, word_values, few_hashes>,  //
                           over<media::dram, indexes::fast_fair, word_values>,                  //
                           over<media::dram, indexes::fp_tree, blob_values>,                    //
                           over<media::dram, indexes::skip_list, word_values>,                  //
                           over<media::dram, indexes::skip_list_pm, blob_values>,               //
                           over<media::dram, indexes::woart, word_values>,                      //
                           over<media::dram, indexes::woart, blob_values>>;
TYPED_TEST_SUITE(string_indexes, all);

template <class Index>
concept ordered = requires(Index& index) {
  index.scan("", 1, [](std::string_view, const auto&) {});
};

template <class Index>
typename Index::value_type some_value(random& source) {
  if constexpr (std::is_same_v<typename Index::value_type, std::string>)
    return std::string(source.below(200), static_cast<char>('a' + source.below(26)));
  else
    return source.next();
}

// Keys with much in common: prefixes of each other, zero bytes, long runs.
std::string some_key(random& source) {
  static const std::vector<std::string> beginnings = {"", "a", "usr/share/", "usr/share/doc/", "usr/share/doc/lib"};
  std::string key = beginnings[source.below(beginnings.size())];
  for (std::uint64_t i = source.below(6); i > 0; --i) key += std::string_view("ab\xff\0", 4)[source.below(4)];
  if (source.below(50) == 0) key.append(source.below(3000), 'x');
  return key;
}

template <class Index>
void expect_equal(Index& index, const std::map<std::string, typename Index::value_type>& model) {
  const indexes::check_report report = index.check();
  ASSERT_TRUE(report.ok()) << report.violations.front();
  ASSERT_EQ(report.entries, model.size());
  std::vector<std::pair<std::string, typename Index::value_type>> walked;
  index.for_each([&](std::string_view key, const auto& value) { walked.emplace_back(key, value); });
  if (!ordered<Index>) std::sort(walked.begin(), walked.end());
  ASSERT_EQ(walked.size(), model.size());
  ASSERT_TRUE(std::equal(walked.begin(), walked.end(), model.begin(),
                         [](const auto& a, const auto& b) { return a.first == b.first && a.second == b.second; }));
}

// CCEH that notes which searches were announced by `prefetch_find`.
class watched_words : public forwarding_index<indexes::cceh<media::dram>> {
  using table = indexes::cceh<media::dram>;

 public:
  static watched_words open(media::dram& medium, std::string_view name) { return watched_words(medium, name); }

  void prefetch_find(indexes::key_type key) {
    announced_ = key;
    inner().prefetch_find(key);
  }
  std::optional<indexes::value_type> find(indexes::key_type key) {
    ++(announced_ == key ? announced_searches : other_searches);
    return inner().find(key);
  }

  std::uint64_t announced_searches = 0;
  std::uint64_t other_searches = 0;

 private:
  watched_words(media::dram& medium, std::string_view name)
      : forwarding_index([&] { return table::open(medium, name); }) {}

  std::optional<indexes::key_type> announced_;
};

TEST(string_finds, ask_for_the_line_of_the_word_first) {
  media::dram medium;
  auto index = string_index<media::dram, watched_words, word_values>::open(medium, "t");
  for (std::uint64_t i = 0; i < 100; ++i) ASSERT_EQ(index.insert(std::to_string(i), i), outcome::inserted);
  index.words().announced_searches = index.words().other_searches = 0;
  for (std::uint64_t i = 0; i < 200; ++i) ASSERT_EQ(index.find(std::to_string(i)).has_value(), i < 100);
  EXPECT_EQ(index.words().announced_searches, 200U);
  EXPECT_EQ(index.words().other_searches, 0U);
}

TYPED_TEST(string_indexes, answer_as_a_map_does) {
  for (const std::uint64_t seed : seeds(3)) {
    media::dram medium;
    auto index = TypeParam::open(medium, "t");
    std::map<std::string, typename TypeParam::value_type> model;
    random source(seed);
    for (int i = 0; i < 20000; ++i) {
      const std::string key = some_key(source);
      const auto value = some_value<TypeParam>(source);
      const bool there = model.contains(key);
      switch (source.below(6)) {
        case 0:
          ASSERT_EQ(index.insert(key, value), there ? outcome::exists : outcome::inserted) << seed << ", " << i;
          model.emplace(key, value);
          break;
        case 1:
          ASSERT_EQ(index.upsert(key, value), there ? outcome::updated : outcome::inserted) << seed << ", " << i;
          model[key] = value;
          break;
        case 2:
          ASSERT_EQ(index.update(key, value), there ? outcome::updated : outcome::absent) << seed << ", " << i;
          if (there) model[key] = value;
          break;
        case 3:
          ASSERT_EQ(index.erase(key), there ? outcome::erased : outcome::absent) << seed << ", " << i;
          model.erase(key);
          break;
        case 4:
          ASSERT_EQ(index.find(key), there ? std::optional(model[key]) : std::nullopt) << seed << ", " << i;
          break;
        default:
          if constexpr (ordered<TypeParam>) {
            auto next = model.lower_bound(key);
            const std::size_t most = source.below(30);
            const std::size_t count = index.scan(key, most, [&](std::string_view k, const auto& v) {
              ASSERT_NE(next, model.end()) << seed << ", " << i;
              ASSERT_EQ(k, next->first) << seed << ", " << i;
              ASSERT_EQ(v, next->second) << seed << ", " << i;
              ++next;
            });
            ASSERT_TRUE(count == most || next == model.end()) << seed << ", " << i;
          }
      }
    }
    expect_equal(index, model);
  }
}

TYPED_TEST(string_indexes, hold_exactly_the_bytes_that_they_say) {
  media::dram medium;
  auto index = TypeParam::open(medium, "t");
  random source(7);
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < 3000; ++i) index.upsert(some_key(source), some_value<TypeParam>(source));
    for (int i = 0; i < 2000; ++i) index.erase(some_key(source));
    ASSERT_EQ(index.stats().medium_bytes, medium.used().allocated_bytes);
  }
}

TYPED_TEST(string_indexes, give_back_what_is_erased_or_replaced) {
  media::dram medium;
  auto index = TypeParam::open(medium, "t");
  const std::string key(1000, 'k');
  random source(3);
  const auto work = [&] {
    for (int i = 0; i < 20; ++i) {
      const std::string own = key + std::to_string(i);
      index.upsert(own, some_value<TypeParam>(source));
      index.upsert(own, some_value<TypeParam>(source));
    }
    for (int i = 0; i < 20; ++i) index.erase(key + std::to_string(i));
  };
  for (int i = 0; i < 50; ++i) work();
  const std::uint64_t after_a_while = medium.used().allocated_bytes;
  for (int i = 0; i < 500; ++i) work();
  // Retired blocks are bounded, under any load.
  EXPECT_LT(medium.used().allocated_bytes, after_a_while + 200'000);
  EXPECT_EQ(index.size(), 0U);
}

TYPED_TEST(string_indexes, take_keys_of_every_length) {
  media::dram medium;
  auto index = TypeParam::open(medium, "t");
  random source(5);
  std::map<std::string, typename TypeParam::value_type> model;
  std::vector<std::size_t> lengths;
  for (std::size_t n = 0; n < 300; ++n) lengths.push_back(n);
  for (const std::size_t n : {1000U, 4096U, 65535U, 65536U}) lengths.push_back(n);
  // Each is the beginning of the next.
  for (const std::size_t n : lengths) {
    const auto value = some_value<TypeParam>(source);
    ASSERT_EQ(index.insert(std::string(n, '\0'), value), outcome::inserted) << n;
    model.emplace(std::string(n, '\0'), value);
  }
  expect_equal(index, model);
  for (const auto& [key, value] : model) ASSERT_EQ(index.find(key), value) << key.size();
  for (const std::size_t n : lengths) ASSERT_EQ(index.erase(std::string(n, '\0')), outcome::erased) << n;
  EXPECT_EQ(index.size(), 0U);
}

TYPED_TEST(string_indexes, refuse_what_is_too_long_and_change_nothing) {
  media::dram medium;
  auto index = TypeParam::open(medium, "t");
  const std::string key(65537, 'k');
  const typename TypeParam::value_type value{};
  try {
    index.insert(key, value);
    FAIL() << "a key of 65537 bytes was taken";
  } catch (const error& e) {
    EXPECT_NE(std::string_view(e.what()).find("65537 bytes"), std::string_view::npos) << e.what();
  }
  EXPECT_THROW(index.upsert(key, value), error);
  EXPECT_EQ(index.find(key), std::nullopt);
  EXPECT_EQ(index.update(key, value), outcome::absent);
  EXPECT_EQ(index.erase(key), outcome::absent);
  if constexpr (std::is_same_v<typename TypeParam::value_type, std::string>) {
    index.insert("k", "v");
    const std::string greatest(std::size_t{1} << 20, 'v');
    EXPECT_THROW(index.update("k", greatest + "v"), error);
    EXPECT_EQ(index.find("k"), "v");
    EXPECT_EQ(index.update("k", greatest), outcome::updated);
    EXPECT_EQ(index.find("k"), greatest);
  }
}

TYPED_TEST(string_indexes, find_many_as_they_find_one) {
  media::dram medium;
  auto index = TypeParam::open(medium, "t");
  random source(11);
  std::vector<std::string> keys;
  for (int i = 0; i < 2000; ++i) {
    keys.push_back(some_key(source));
    if (i % 2 == 0) index.upsert(keys.back(), some_value<TypeParam>(source));
  }
  const std::vector<std::string_view> views(keys.begin(), keys.end());
  std::vector<std::optional<typename TypeParam::value_type>> found(keys.size());
  index.find_batch(views, found);
  for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(found[i], index.find(keys[i])) << i;
}

// Values contain their key, and reads of them are never torn, while others replace, erase and insert.
TYPED_TEST(string_indexes, readers_see_whole_entries_while_others_write) {
  const watchdog limit(std::chrono::seconds(120), "readers and writers hang");
  media::dram medium;
  auto index = TypeParam::open(medium, "t");
  constexpr std::uint64_t keys = 300;
  const auto key_of = [](std::uint64_t i) { return "shared beginning/" + std::string(i % 7, 'x') + std::to_string(i); };
  const auto value_of = [](std::uint64_t i, std::uint64_t version) {
    if constexpr (std::is_same_v<typename TypeParam::value_type, std::string>)
      return std::to_string(i) + ":" + std::string(version % 150, static_cast<char>('a' + version % 26));
    else
      return i << 32 | version;
  };
  const auto is_whole = [&](std::uint64_t i, const auto& value) {
    if constexpr (std::is_same_v<typename TypeParam::value_type, std::string>) {
      const std::string head = std::to_string(i) + ":";
      return value.starts_with(head) && value.find_first_not_of(value.back(), head.size()) == std::string::npos;
    } else {
      return value >> 32 == i;
    }
  };
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> torn{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      random source(t);
      for (int n = 0; n < 15000; ++n) {
        const std::uint64_t i = source.below(keys / 2) * 2 + t;
        if (source.below(4) == 0)
          index.erase(key_of(i));
        else
          index.upsert(key_of(i), value_of(i, source.below(1000)));
      }
      stop = true;
    });
  for (std::uint64_t t = 0; t < 2; ++t)
    threads.emplace_back([&, t] {
      random source(t + 10);
      while (!stop) {
        const std::uint64_t i = source.below(keys);
        if (const auto found = index.find(key_of(i)); found && !is_whole(i, *found)) ++torn;
        if constexpr (ordered<TypeParam>) {
          std::string last;
          index.scan(key_of(i), 20, [&](std::string_view key, const auto& value) {
            if (std::string_view(last) >= key && !last.empty()) ++torn;
            last = key;
            const std::size_t digits = key.find_last_not_of("0123456789") + 1;
            if (!is_whole(std::stoull(std::string(key.substr(digits))), value)) ++torn;
          });
        }
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(torn, 0U);
  const indexes::check_report report = index.check();
  EXPECT_TRUE(report.ok()) << report.violations.front();
  EXPECT_EQ(index.stats().medium_bytes, medium.used().allocated_bytes);
}

// ---- cost ----

// The 64-bit hash in the word keeps searches off all keys but one.
TEST(string_index, a_find_in_a_hash_table_reads_one_record) {
  media::counted<media::dram> medium;
  auto index = over<media::counted<media::dram>, indexes::cceh, word_values>::open(medium, "t");
  auto numbers = indexes::cceh<media::counted<media::dram>>::open(medium, "numbers");
  const auto key_of = [](int i) { return "a key of thirty-two bytes, " + std::to_string(10000 + i); };
  for (int i = 0; i < 5000; ++i) {
    index.insert(key_of(i), 1);
    numbers.insert(static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15, 1);
  }
  const auto lines_of = [&](auto&& find) {
    medium.reset();
    for (int i = 0; i < 5000; ++i) {
      medium.begin_operation();
      find(i);
      medium.end_operation();
    }
    return static_cast<double>(medium.total().lines_read) / 5000;
  };
  const double of_numbers = lines_of([&](int i) { numbers.find(static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15); });
  EXPECT_NEAR(lines_of([&](int i) { EXPECT_TRUE(index.find(key_of(i))); }), of_numbers + 1, 0.1);
  EXPECT_NEAR(lines_of([&](int i) { EXPECT_FALSE(index.find(key_of(i) + "?")); }), of_numbers, 0.1);
}

TEST(string_index, a_find_in_a_tree_reads_one_record) {
  media::counted<media::dram> medium;
  auto index = over<media::counted<media::dram>, indexes::fast_fair, word_values>::open(medium, "t");
  random source(1);
  std::vector<std::string> keys;
  for (int i = 0; i < 5000; ++i) {
    std::string key;
    while (key.size() < 32) key += static_cast<char>(source.next());
    keys.push_back(key);
    index.insert(key, 1);
  }
  medium.reset();
  for (const std::string& key : keys) {
    medium.begin_operation();
    index.words().find(strings::detail::layer{}.word_of(key));
    medium.end_operation();
  }
  const std::uint64_t of_words = medium.total().lines_read;
  medium.reset();
  for (const std::string& key : keys) {
    medium.begin_operation();
    EXPECT_TRUE(index.find(key));
    medium.end_operation();
  }
  EXPECT_EQ(medium.total().lines_read, of_words + keys.size());
}

// ---- pools ----

TEST(string_index, comes_back_from_its_pool_and_refuses_another_layout) {
  medium_under_test<media::pmem> under;
  using sessions = over<media::pmem, indexes::cceh, blob_values>;
  using words = over<media::pmem, indexes::skip_list, word_values>;
  {
    auto index = sessions::open(*under.medium, "sessions");
    auto other = words::open(*under.medium, "words");
    for (int i = 0; i < 3000; ++i) {
      ASSERT_EQ(index.insert("session " + std::to_string(i), std::string(static_cast<std::size_t>(i), 'v')),
                outcome::inserted);
      ASSERT_EQ(other.insert(std::to_string(i), 7), outcome::inserted);
    }
  }
  under.reopen();
  auto index = sessions::open(*under.medium, "sessions");
  ASSERT_TRUE(index.check().ok());
  ASSERT_EQ(index.size(), 3000U);
  EXPECT_EQ(index.find("session 1234"), std::string(1234, 'v'));
  auto other = words::open(*under.medium, "words");
  EXPECT_EQ(other.size(), 3000U);
  try {
    over<media::pmem, indexes::cceh, word_values>::open(*under.medium, "sessions");
    FAIL() << "blobs were opened as words";
  } catch (const error& e) {
    EXPECT_NE(std::string_view(e.what()).find("strings_hashed_blobs"), std::string_view::npos) << e.what();
  }
}

// The numbers that it holds would be taken for the places of records.
TEST(string_index, does_not_open_an_index_of_numbers_that_has_entries) {
  media::dram medium;
  const auto refusal = [&](auto open_strings) {
    try {
      open_strings();
    } catch (const error& e) {
      return std::string(e.what());
    }
    return std::string("none");
  };
  {
    auto numbers = indexes::fast_fair<media::dram>::open(medium, "tree");
    numbers.insert(strings::detail::layer{}.word_of("k"), 7);
    auto hashed = indexes::cceh<media::dram>::open(medium, "table");
    hashed.insert(1, 2);
    auto digits = indexes::woart<media::dram>::open(medium, "digits");
    digits.insert(1, 2);
  }
  const std::string tree =
      refusal([&] { over<media::dram, indexes::fast_fair, word_values>::open(medium, "tree").insert("other", 1); });
  EXPECT_NE(tree.find("'tree' is an index of numbers, and has entries"), std::string::npos) << tree;
  const std::string table =
      refusal([&] { over<media::dram, indexes::cceh, word_values>::open(medium, "table").insert("other", 1); });
  EXPECT_NE(table.find("'table' is an index of numbers"), std::string::npos) << table;
  const std::string digits =
      refusal([&] { over<media::dram, indexes::woart, word_values>::open(medium, "digits").insert("other", 1); });
  EXPECT_NE(digits.find("'digits' is an index of numbers"), std::string::npos) << digits;
  // Without an entry it may become one of strings.
  auto numbers = indexes::fast_fair<media::dram>::open(medium, "tree");
  EXPECT_EQ(numbers.erase(strings::detail::layer{}.word_of("k")), outcome::erased);
  auto strings = over<media::dram, indexes::fast_fair, word_values>::open(medium, "tree");
  EXPECT_EQ(strings.insert("k", 1), outcome::inserted);
  EXPECT_TRUE(strings.check().ok());
}

// A search never follows a broken record outside: it is reported.
TEST(string_index, check_finds_a_key_that_does_not_lead_to_its_record) {
  media::dram medium;
  auto tree = over<media::dram, indexes::fast_fair, word_values>::open(medium, "tree");
  tree.insert("usr/share/doc/a", 1);
  tree.insert("usr/share/doc/b", 2);
  ASSERT_TRUE(tree.check().ok());
  tree.words().insert(strings::detail::layer{}.word_of("other"),
                      *tree.words().find(strings::detail::layer{1, 4, 0}.word_of("a")));
  EXPECT_FALSE(tree.check().ok());

  auto table = over<media::dram, indexes::cceh, word_values>::open(medium, "table");
  table.insert("a", 1);
  ASSERT_TRUE(table.check().ok());
  table.words().insert(strings::detail::hash_of("b"), *table.words().find(strings::detail::hash_of("a")));
  EXPECT_FALSE(table.check().ok());
}

}  // namespace
}  // namespace pmlab::tests::string_index_test
