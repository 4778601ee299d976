// Many entries at once: into an empty index and between present entries, without space, and beside other threads.
#include <pmlab/indexes/index.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/comparison.hpp"
#include "support/loadable.hpp"
#include "support/medium_under_test.hpp"
#include "support/operations.hpp"
#include "support/settings.hpp"

namespace pmlab::tests::load_test {
namespace {

using indexes::entry;
using indexes::outcome;

template <class Setting>
class load : public testing::Test {
 protected:
  using index_type = typename Setting::index;
  static_assert(indexes::loadable_index<index_type>);
};
TYPED_TEST_SUITE(load, loadable_settings, setting_name);

TYPED_TEST(load, into_an_empty_index) {
  for (const key_set kind : all_key_sets)
    for (const std::size_t count : {1U, 25U, 29U, 361U, 5000U}) {
      medium_under_test<typename TypeParam::medium> under;
      auto index = TypeParam::index::open(*under.medium);
      const std::vector<entry> entries = sorted_entries(kind, count);
      ASSERT_EQ(index.load(entries), entries.size());
      ASSERT_EQ(compare_all(index, contents_of(entries)), "") << to_string(kind) << ", " << count;
    }
}

TYPED_TEST(load, fills_leaves_but_not_to_the_brim) {
  medium_under_test<typename TypeParam::medium> under;
  auto index = TypeParam::index::open(*under.medium);
  ASSERT_EQ(index.load(sorted_entries(key_set::anywhere, 8000)), 8000U);
  EXPECT_GT(index.stats().load_factor, 0.8);
  EXPECT_LT(index.stats().load_factor, 0.9);
}

// An empty load does nothing; present entries keep their values; others are inserted between them.
TYPED_TEST(load, between_what_is_there) {
  for (const key_set kind : {key_set::dense, key_set::anywhere, key_set::extremes, key_set::clustered}) {
    medium_under_test<typename TypeParam::medium> under;
    auto index = TypeParam::index::open(*under.medium);
    EXPECT_EQ(index.load({}), 0U);
    const std::vector<entry> entries = sorted_entries(kind, 4000);
    contents model = contents_of(entries);
    for (std::size_t i = 0; i < entries.size(); ++i)
      if (i % 7 == 0 || (i / 500) % 2 == 1) {
        ASSERT_EQ(index.insert(entries[i].key, 5), outcome::inserted);
        model[entries[i].key] = 5;
      }
    ASSERT_EQ(index.load(entries), entries.size());
    ASSERT_EQ(compare_all(index, model), "") << to_string(kind);
    ASSERT_EQ(index.load(entries), entries.size()) << "again";
    for (std::size_t i = 0; i < entries.size(); i += 2) {
      ASSERT_EQ(index.erase(entries[i].key), outcome::erased);
      model.erase(entries[i].key);
    }
    ASSERT_EQ(compare_all(index, model), "") << to_string(kind);
    // Into the holes that were left.
    ASSERT_EQ(index.load(entries), entries.size());
    for (const entry& e : entries) model.emplace(e.key, e.value);
    ASSERT_EQ(compare_all(index, model), "") << to_string(kind);
  }
}

// A row before entries that the last leaf holds.
TYPED_TEST(load, below_the_greatest_key) {
  medium_under_test<typename TypeParam::medium> under;
  auto index = TypeParam::index::open(*under.medium);
  ASSERT_EQ(index.insert(~std::uint64_t{0}, 3), outcome::inserted);
  const std::vector<entry> entries = sorted_entries(key_set::sequential, 1000);
  ASSERT_EQ(index.load(entries), entries.size());
  contents model = contents_of(entries);
  model[~std::uint64_t{0}] = 3;
  ASSERT_EQ(compare_all(index, model), "");
}

TYPED_TEST(load, works_on_like_any_other_index) {
  medium_under_test<typename TypeParam::medium> under;
  auto index = TypeParam::index::open(*under.medium);
  const std::vector<entry> entries = sorted_entries(key_set::anywhere, 3000);
  ASSERT_EQ(index.load(entries), entries.size());
  contents model = contents_of(entries);
  random source(3);
  for (int i = 0; i < 6000; ++i) {
    const std::uint64_t key = entries[source.below(entries.size())].key + source.below(3);
    const step s{random_action(source, {}), key, source.next()};
    ASSERT_EQ(perform(s, index), expect(s, model)) << to_string(s);
  }
  ASSERT_EQ(compare_all(index, model), "");
}

// From some entry on all are missing, and only these.
TYPED_TEST(load, without_space_the_first_part_is_there) {
  constexpr bool on_pmem = std::is_same_v<typename TypeParam::medium, media::pmem>;
  medium_under_test<typename TypeParam::medium> under(on_pmem ? media::pmem::least_pool_bytes : 512 << 10);
  auto index = TypeParam::index::open(*under.medium);
  const std::vector<entry> entries = sorted_entries(key_set::anywhere, 1'000'000);
  const std::size_t loaded = index.load(entries);
  ASSERT_GT(loaded, 1000U);
  ASSERT_LT(loaded, entries.size());
  ASSERT_EQ(compare_all(index, contents_of(std::span(entries).first(loaded))), "");
  EXPECT_EQ(index.load(std::span(entries).subspan(loaded)), 0U);
  EXPECT_EQ(index.update(entries.front().key, 9), outcome::updated);
}

template <class Setting>
class load_concurrent : public testing::Test {};
TYPED_TEST_SUITE(load_concurrent, loadable_concurrent_settings, setting_name);

// Parts that are loaded at a time, in any order, while others insert, erase and scan between.
TYPED_TEST(load_concurrent, parts_from_many_threads_beside_readers_and_writers) {
  constexpr std::size_t parts = 12;
  constexpr std::size_t entries_per_part = 4000;
  for (std::uint64_t round = 0; round < 5; ++round) {
    medium_under_test<typename TypeParam::medium> under;
    auto index = TypeParam::index::open(*under.medium);
    const std::vector<entry> entries =
        sorted_entries(round % 2 == 0 ? key_set::anywhere : key_set::dense, parts * entries_per_part);
    contents model = contents_of(entries);
    std::atomic<std::size_t> next{0};
    std::atomic<bool> done{false};
    std::atomic<std::uint64_t> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 3; ++t)
      threads.emplace_back([&] {
        for (std::size_t part = next++; part < parts; part = next++) {
          const auto own = std::span(entries).subspan(part * entries_per_part, entries_per_part);
          if (index.load(own) != own.size()) ++wrong;
          // Loaded entries are present.
          for (const entry& e : own)
            if (index.find(e.key) != e.value) ++wrong;
        }
      });
    threads.emplace_back([&] {
      std::vector<entry> found(200);
      random source(round);
      while (!done) {
        const std::size_t count = index.scan(entries[source.below(entries.size())].key, found);
        if (!std::is_sorted(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count),
                            [](const entry& a, const entry& b) { return a.key <= b.key; }))
          ++wrong;
      }
    });
    threads.emplace_back([&] {
      // Keys that are no part of the load, where there is room between its keys.
      for (std::size_t i = 0; round % 2 == 0 && i < entries.size(); i += 3) {
        if (index.insert(entries[i].key + 1, i) != outcome::inserted) ++wrong;
        if (index.find(entries[i].key + 1) != i) ++wrong;
        if (i % 2 == 0 && index.erase(entries[i].key + 1) != outcome::erased) ++wrong;
      }
    });
    for (std::size_t i = 0; round % 2 == 0 && i < entries.size(); i += 3)
      if (i % 2 != 0) model[entries[i].key + 1] = i;
    for (std::size_t t = 0; t < threads.size(); ++t) {
      if (t == 3) continue;
      threads[t].join();
    }
    done = true;
    threads[3].join();
    EXPECT_EQ(wrong, 0U);
    ASSERT_EQ(compare_all(index, model), "");
  }
}

}  // namespace
}  // namespace pmlab::tests::load_test
