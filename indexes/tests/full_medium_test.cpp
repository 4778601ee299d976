// A medium without space: `full` changes nothing, present entries stay, and the index keeps serving.
#include <pmlab/base/error.hpp>
#include <pmlab/indexes/index.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/comparison.hpp"
#include "support/history.hpp"
#include "support/medium_under_test.hpp"
#include "support/operations.hpp"
#include "support/settings.hpp"

namespace pmlab::tests::full_medium_test {
namespace {

using indexes::outcome;

template <class Setting>
class full_medium : public testing::Test {
 protected:
  static constexpr std::uint64_t small = [] {
    return std::is_same_v<typename Setting::medium, media::pmem> ? media::pmem::least_pool_bytes : 512 << 10;
  }();

  // Inserts until the medium is full. False: it never was.
  template <class Index>
  bool fill(Index& index, key_set kind) {
    random source(1);
    for (const std::uint64_t key : make_keys(kind, 2'000'000, source)) {
      const outcome o = index.insert(key, ~key);
      if (o == outcome::full) {
        EXPECT_EQ(index.find(key), std::nullopt) << "full, and yet there";
        const outcome again = index.upsert(key, 1);
#if defined(PMLAB_TESTS_OF_STRINGS)
        // There may be room for a shorter value.
        if (again == outcome::inserted) {
          model_[key] = 1;
          return true;
        }
#endif
        EXPECT_EQ(again, outcome::full);
        EXPECT_EQ(index.find(key), std::nullopt) << "full, and yet there";
        return true;
      }
      if (o != outcome::inserted) return false;
      model_[key] = ~key;
    }
    return false;
  }

  medium_under_test<typename Setting::medium> under_{small};
  contents model_;
};

TYPED_TEST_SUITE(full_medium, all_settings, setting_name);

// C13: a split that finds no space fails the insert, and drops no key.
TYPED_TEST(full_medium, C13_full_loses_nothing_and_the_index_keeps_serving) {
  for (const key_set kind : {key_set::anywhere, key_set::sequential}) {
    medium_under_test<typename TypeParam::medium> under(this->small);
    auto index = TypeParam::index::open(*under.medium);
    this->model_.clear();
    ASSERT_TRUE(this->fill(index, kind));
    ASSERT_GT(this->model_.size(), 1000U);
    ASSERT_EQ(compare_all(index, this->model_), "");

    // Operations that need no space continue.
    for (auto& [key, value] : this->model_) {
      const outcome updated = index.update(key, value + 1);
#if defined(PMLAB_TESTS_OF_STRINGS)
      if (updated == outcome::full) continue;  // a blob is written beside the one that it replaces
#endif
      ASSERT_EQ(updated, outcome::updated);
      ++value;
    }
    std::vector<std::uint64_t> erased;
    for (const auto& [key, value] : this->model_)
      if (key % 3 != 0) erased.push_back(key);
    for (const std::uint64_t key : erased) {
      ASSERT_EQ(index.erase(key), outcome::erased);
      this->model_.erase(key);
    }
    ASSERT_EQ(compare_all(index, this->model_), "");

    // Erased entries left room.
    std::size_t inserted = 0;
    for (const std::uint64_t key : erased) {
      const outcome o = index.insert(key, key);
      if (o != outcome::inserted) continue;
      ++inserted;
      this->model_[key] = key;
    }
    EXPECT_GT(inserted, erased.size() / 2);
    ASSERT_EQ(compare_all(index, this->model_), "");
  }
}

// An operation that returns `full` frees everything that it allocated.
TYPED_TEST(full_medium, C14_failed_inserts_leak_nothing) {
  auto index = TypeParam::index::open(*this->under_.medium);
  ASSERT_TRUE(this->fill(index, key_set::anywhere));
  const auto before = this->under_.medium->used().allocated_bytes;
  const auto held = index.stats().medium_bytes;
  random source(99);
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t key = source.next();
    if (index.insert(key, 1) == outcome::inserted) this->model_[key] = 1;
  }
  EXPECT_EQ(this->under_.medium->used().allocated_bytes - before, index.stats().medium_bytes - held);
  EXPECT_EQ(compare_all(index, this->model_), "");
}

#if !defined(PMLAB_TESTS_OF_STRINGS)
// Entries that another thread erased are free space at once, even if that thread has ended or stays idle.
TYPED_TEST(full_medium, what_an_idle_thread_erased_makes_room_at_once) {
  auto index = TypeParam::index::open(*this->under_.medium);
  ASSERT_TRUE(this->fill(index, key_set::anywhere));
  constexpr std::size_t by_ended = 10;
  constexpr std::size_t by_idle = 150;
  std::vector<std::uint64_t> keys;
  for (const auto& [key, value] : this->model_)
    if (keys.size() < by_ended + by_idle && key % 3 == 0) keys.push_back(key);
  const auto erase = [&](std::size_t first, std::size_t count) {
    for (std::size_t i = first; i < first + count; ++i) EXPECT_EQ(index.erase(keys[i]), outcome::erased);
  };
  const auto insert = [&](std::size_t first, std::size_t count) {
    std::size_t inserted = 0;
    for (std::size_t i = first; i < first + count; ++i) {
      const bool fits = index.insert(keys[i], ~keys[i]) == outcome::inserted;
      inserted += fits ? 1 : 0;
      if (!fits) this->model_.erase(keys[i]);
    }
    // Towers in the medium: some of the space may become tower nodes.
    constexpr bool has_tower_nodes = std::is_same_v<typename TypeParam::kind, kind<indexes::skip_list_pm>>;
    EXPECT_GE(inserted, has_tower_nodes ? count / 2 : count);
  };
  std::thread([&] { erase(0, by_ended); }).join();
  insert(0, by_ended);
  std::atomic<bool> is_idle{false};
  std::atomic<bool> may_end{false};
  std::thread idle([&] {
    erase(by_ended, by_idle);
    is_idle = true;
    while (!may_end) std::this_thread::yield();
  });
  while (!is_idle) std::this_thread::yield();
  insert(by_ended, by_idle);
  may_end = true;
  idle.join();
  EXPECT_EQ(compare_all(index, this->model_), "");
}
#endif

TYPED_TEST(full_medium, a_medium_without_space_for_an_empty_index_is_an_error) {
  if (std::is_same_v<typename TypeParam::medium, media::pmem>) GTEST_SKIP() << "no pool is so small";
  medium_under_test<typename TypeParam::medium> tiny(
      std::is_same_v<typename TypeParam::medium, restartable_medium> ? 5800 : 64);
  auto used = tiny.medium->used().allocated_bytes;
  const auto open_and_fill = [&] {
    auto index = TypeParam::index::open(*tiny.medium);
    // An index that makes its first node only when it needs it: there is room for an empty one.
    used = tiny.medium->used().allocated_bytes;
    if (index.insert(1, 1) == outcome::full) throw error("full", "");
  };
  if constexpr (std::is_same_v<typename TypeParam::kind, reference_kind>)
    SUCCEED() << "its node is a line";
  else {
    EXPECT_THROW(open_and_fill(), error);
    EXPECT_EQ(tiny.medium->used().allocated_bytes, used);
  }
}

template <class Setting>
class full_medium_of_many_threads : public full_medium<Setting> {};
TYPED_TEST_SUITE(full_medium_of_many_threads, concurrent_settings, setting_name);

TYPED_TEST(full_medium_of_many_threads, C13_threads_fill_it_and_lose_nothing) {
  auto index = TypeParam::index::open(*this->under_.medium);
  constexpr unsigned threads = 4;
  std::vector<std::vector<std::uint64_t>> acknowledged(threads);
  run_threads(threads, [&](unsigned t) {
    random source(t + 1);
    for (int refused = 0; refused < 200;) {
      const std::uint64_t key = source.next();
      if (index.insert(key, ~key) == outcome::inserted)
        acknowledged[t].push_back(key);
      else
        ++refused;
    }
  });
  for (const auto& keys : acknowledged)
    for (const std::uint64_t key : keys) this->model_[key] = ~key;
  EXPECT_EQ(compare_all(index, this->model_), "");
}

}  // namespace
}  // namespace pmlab::tests::full_medium_test
