// Space of string indexes: after any history at most twice as much as the same entries take when they are loaded
// freshly.
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/indexes/fp_tree.hpp>
#include <pmlab/indexes/skip_list.hpp>
#include <pmlab/indexes/woart.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/strings/string_index.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/campaign.hpp"
#include "support/operations.hpp"
#include "support/watchdog.hpp"

namespace pmlab::tests::space_test {
namespace {

using indexes::outcome;
using strings::blob_values;
using strings::string_index;
using strings::word_values;

template <template <class...> class Index, class Values>
using over = string_index<media::dram, Index<media::dram>, Values>;

template <class T>
class string_space : public testing::Test {};
using all = testing::Types<over<indexes::skip_list, word_values>, over<indexes::fp_tree, blob_values>,
                           over<indexes::fast_fair, word_values>, over<indexes::cceh, word_values>,
                           over<indexes::woart, blob_values>>;
TYPED_TEST_SUITE(string_space, all);

template <class Index>
concept ordered = requires(Index& index) {
  index.scan("", 1, [](std::string_view, const auto&) {});
};

template <class Index>
auto some_value() {
  if constexpr (std::is_same_v<typename Index::value_type, std::string>)
    return std::string("value");
  else
    return std::uint64_t{7};
}

// As paths are: their parts ascend, and part in several places.
std::string path(std::uint64_t i) {
  return "var/lib/spool/" + std::to_string(i / 1000) + "/dir" + std::to_string(i / 10 % 100) + "/item-" +
         std::to_string(i);
}

struct space {
  std::uint64_t medium;
  std::uint64_t dram;
};
template <class Index>
space space_of(const media::dram& medium, const Index& index) {
  const auto stats = index.stats();
  EXPECT_EQ(stats.medium_bytes, medium.used().allocated_bytes);
  return {medium.used().allocated_bytes, stats.dram_bytes};
}
template <class Index>
space of_fresh_load(const std::vector<std::string>& keys) {
  media::dram medium;
  auto index = Index::open(medium, "t");
  for (const std::string& key : keys) EXPECT_EQ(index.insert(key, some_value<Index>()), outcome::inserted);
  return space_of(medium, index);
}

// Bytes in the medium that are neither the words' nor the entries' own.
template <class Index>
std::uint64_t overhead(Index& index) {
  std::uint64_t entries = 0;
  index.for_each([&](std::string_view key, const auto& value) {
    entries += strings::detail::record::block_bytes(key.size());
    if constexpr (std::is_same_v<typename Index::value_type, std::string>)
      if (!value.empty()) entries += strings::detail::bytes_block::block_bytes(value.size());
  });
  return index.stats().medium_bytes - index.words().stats().medium_bytes - entries;
}
// A page of the ledger or two for each thread, and the erased keys that short readers may see.
constexpr std::uint64_t most_overhead = 40'000;

TYPED_TEST(string_space, of_a_rolling_window_is_at_most_twice_that_of_a_fresh_load) {
  constexpr std::uint64_t window = 3000;
  constexpr std::uint64_t windows = 20;
  std::vector<std::string> last;
  for (std::uint64_t i = (windows - 1) * window; i < windows * window; ++i) last.push_back(path(i));
  const space fresh = of_fresh_load<TypeParam>(last);
  media::dram medium;
  auto index = TypeParam::open(medium, "t");
  for (std::uint64_t i = 0; i < windows * window; ++i) {
    ASSERT_EQ(index.insert(path(i), some_value<TypeParam>()), outcome::inserted);
    if (i >= window) {
      ASSERT_EQ(index.erase(path(i - window)), outcome::erased);
    }
  }
  const space now = space_of(medium, index);
  EXPECT_LE(now.medium, 2 * fresh.medium);
  EXPECT_LE(now.dram, 2 * fresh.dram);
  const indexes::check_report report = index.check();
  EXPECT_TRUE(report.ok()) << report.violations.front();
  EXPECT_EQ(report.entries, window);
}

TYPED_TEST(string_space, of_what_was_filled_and_emptied_is_that_of_an_empty_index) {
  media::dram medium;
  auto index = TypeParam::open(medium, "t");
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < 5000; ++i) index.insert(path(i), some_value<TypeParam>());
    for (std::uint64_t i = 0; i < 5000; ++i) ASSERT_EQ(index.erase(path(i)), outcome::erased);
  }
  EXPECT_LE(index.words().size(), 100U);
  EXPECT_LE(overhead(index), most_overhead);
}

// A key in each of many places where paths once parted: the places go with the other keys.
TYPED_TEST(string_space, of_a_few_keys_that_are_left_of_many_is_that_of_these) {
  const auto key_of = [](std::uint64_t group, std::uint64_t part) {
    std::string key = "group" + std::to_string(1000 + group);
    for (std::uint64_t i = 0; i < 6; ++i) {
      key += "/directory";
      key += i == part ? "-other" : "-same";
    }
    return key;
  };
  for (const std::uint64_t kept : {1U, 2U}) {
    for (const bool ascending : {true, false}) {
      std::vector<std::string> left;
      media::dram medium;
      auto index = TypeParam::open(medium, "t");
      for (std::uint64_t group = 0; group < 300; ++group)
        for (std::uint64_t n = 0; n <= 6; ++n) {
          const std::uint64_t part = ascending ? n : 6 - n;
          ASSERT_EQ(index.insert(key_of(group, part), some_value<TypeParam>()), outcome::inserted);
          if (part + kept > 6) left.push_back(key_of(group, part));
        }
      for (std::uint64_t group = 0; group < 300; ++group)
        for (std::uint64_t part = 0; part + kept <= 6; ++part)
          ASSERT_EQ(index.erase(key_of(group, part)), outcome::erased);
      const indexes::check_report report = index.check();
      ASSERT_TRUE(report.ok()) << report.violations.front();
      ASSERT_EQ(report.entries, left.size());
      for (const std::string& key : left) ASSERT_TRUE(index.find(key)) << key;
      if constexpr (ordered<TypeParam>) {
        EXPECT_LE(overhead(index), most_overhead + (kept == 1 ? 0 : 2 * 300 * 128)) << kept << ascending;
        EXPECT_LE(index.words().size(), 2 * left.size() + 300) << kept << ascending;
      }
    }
  }
}

// Erased keys wait for a reader, in many pages of the ledger, which go when it has ended.
TYPED_TEST(string_space, of_the_ledger_comes_back_after_a_burst) {
  if constexpr (ordered<TypeParam>) {
    media::dram medium;
    auto index = TypeParam::open(medium, "t");
    for (std::uint64_t i = 0; i < 10000; ++i) index.insert(path(i), some_value<TypeParam>());
    std::uint64_t in_the_burst = 0;
    index.for_each_in(path(0), path(0), [&](std::string_view, const auto&) {
      for (std::uint64_t i = 0; i < 10000; ++i) ASSERT_EQ(index.erase(path(i)), outcome::erased);
      in_the_burst = overhead(index);
    });
    EXPECT_GT(in_the_burst, 10000 * 128U);
    for (int i = 0; i < 200; ++i) {
      index.insert("a", some_value<TypeParam>());
      index.erase("a");
    }
    EXPECT_LE(overhead(index), most_overhead);
    EXPECT_EQ(index.stats().medium_bytes, medium.used().allocated_bytes);
  }
}

// Threads share layers that are made and removed with their keys.
TYPED_TEST(string_space, threads_find_their_keys_while_layers_come_and_go) {
  const watchdog limit(std::chrono::seconds(120), "threads hang");
  for (const std::uint64_t seed : seeds(2)) {
    media::dram medium;
    std::vector<std::set<std::string>> there(3);
    const auto work = [&](TypeParam& index, std::size_t t) {
      random source(seed * 16 + t);
      for (int n = 0; n < 12000; ++n) {
        const std::uint64_t some = n / 1000 % 2 == 0 ? 12 : 3000;
        const std::string key = path(source.below(some) * there.size() + t);
        const bool is_there = there[t].contains(key);
        ASSERT_EQ(index.find(key).has_value(), is_there) << replay_command(seed) << ", " << key;
        if (source.below(5) < 2) {
          ASSERT_EQ(index.insert(key, some_value<TypeParam>()), is_there ? outcome::exists : outcome::inserted)
              << replay_command(seed) << ", " << key;
          there[t].insert(key);
        } else {
          ASSERT_EQ(index.erase(key), is_there ? outcome::erased : outcome::absent)
              << replay_command(seed) << ", " << key;
          there[t].erase(key);
        }
      }
    };
    std::size_t entries = 0;
    for (int run = 0; run < 2; ++run) {
      auto index = TypeParam::open(medium, "t" + std::to_string(run));
      for (auto& keys : there) keys.clear();
      std::vector<std::thread> threads;
      for (std::size_t t = 0; t < there.size(); ++t) threads.emplace_back([&, t] { work(index, t); });
      for (std::thread& t : threads) t.join();
      const indexes::check_report report = index.check();
      ASSERT_TRUE(report.ok()) << report.violations.front() << ": " << replay_command(seed);
      entries = 0;
      for (const auto& keys : there) entries += keys.size();
      ASSERT_EQ(report.entries, entries) << replay_command(seed);
    }
    // Closed, it has nothing left to do.
    auto again = TypeParam::open(medium, "t1");
    const indexes::check_report report = again.check();
    ASSERT_TRUE(report.ok()) << report.violations.front() << ": " << replay_command(seed);
    EXPECT_EQ(report.entries, entries) << replay_command(seed);
  }
}

// Keys that idle threads erased are free space, too.
TYPED_TEST(string_space, of_erased_keys_takes_as_many_others_when_the_medium_is_full) {
  for (const bool by_another_thread : {false, true}) {
    media::dram_options options;
    options.capacity_bytes = 1 << 20;
    options.huge_pages = false;
    media::dram medium(options);
    auto index = TypeParam::open(medium, "t");
    const auto key_of = [](std::uint64_t i) {
      const std::string digits = std::to_string(i);
      return "a key of one hundred bytes " + std::string(73 - digits.size(), '0') + digits;
    };
    std::uint64_t filled = 0;
    while (index.insert(key_of(filled), some_value<TypeParam>()) == outcome::inserted) ++filled;
    ASSERT_GT(filled, 1000U);
    std::promise<void> end;
    std::promise<void> erased;
    std::thread idle;
    const auto erase_ten = [&] {
      for (std::uint64_t i = 0; i < 10; ++i) EXPECT_EQ(index.erase(key_of(i)), outcome::erased) << i;
      erased.set_value();
    };
    if (by_another_thread)
      idle = std::thread([&] {
        erase_ten();
        end.get_future().wait();
      });
    else
      erase_ten();
    erased.get_future().wait();
    for (std::uint64_t i = 0; i < 10; ++i)
      EXPECT_EQ(index.insert(key_of(i), some_value<TypeParam>()), outcome::inserted) << i << by_another_thread;
    end.set_value();
    if (idle.joinable()) idle.join();
    EXPECT_EQ(index.size(), filled);
  }
}

}  // namespace
}  // namespace pmlab::tests::space_test
