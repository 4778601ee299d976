// What is special to the skip lists: nodes that come back, deletions that a crash cuts off, towers that are hints.
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/skip_list.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/campaign.hpp"
#include "support/comparison.hpp"
#include "support/crash_medium.hpp"
#include "support/crash_scenario.hpp"
#include "support/history.hpp"
#include "support/medium_under_test.hpp"
#include "support/operations.hpp"

namespace pmlab::tests {
namespace {

using indexes::outcome;

struct in_dram {
  template <class Medium>
  using index = indexes::skip_list<Medium>;
};
struct in_the_medium {
  template <class Medium>
  using index = indexes::skip_list_pm<Medium>;
};

template <class Towers>
class skip_lists : public testing::Test {
 protected:
  template <class Medium>
  using index = typename Towers::template index<Medium>;

  // A crash at every event, with every image; recoveries crash, too.
  static void crash_everywhere(crash_options options) {
    options.crash_recovery_one_in = 2;
    for (const std::uint64_t seed : seeds(3)) {
      options.seed = seed;
      crash_medium medium;
      const crash_result result =
          crash_scenario<index<crash_medium>, index<crash_medium>, crash_medium>(options).run(medium);
      ASSERT_EQ(result.violation, "") << replay_command(seed);
      std::printf("  seed %llu: %s\n", static_cast<unsigned long long>(seed), result.describe().c_str());
    }
  }
};

using placements = testing::Types<in_dram, in_the_medium>;
TYPED_TEST_SUITE(skip_lists, placements);

// S1, S3: crashes between the mark of a deletion and its unlinking, and within the recovery that completes it: nothing
// comes back, nothing is taken out or given back twice (which would show as a leak, or as a key that is lost).
TYPED_TEST(skip_lists, S1_S3_a_deletion_that_a_crash_cuts_off_is_completed_once) {
  crash_options options;
  options.key_count = 6;
  options.preload = 6;
  options.operations = 80;
  this->crash_everywhere(options);
}

// S4, S5: towers of many levels, whose upper parts a crash keeps or loses: the list alone says what is there.
TYPED_TEST(skip_lists, S4_S5_the_list_alone_is_the_truth_after_a_crash) {
  crash_options options;
  options.keys = key_set::anywhere;
  options.key_count = 120;
  options.preload = 120;
  options.operations = 40;
  options.images_per_point = 8;
  this->crash_everywhere(options);
}

// S2: a walk stands on a node while it, and what is around it, is deleted and inserted again.
TYPED_TEST(skip_lists, S2_a_scan_finds_its_way_over_nodes_that_are_deleted_meanwhile) {
  media::dram medium;
  auto list = TestFixture::template index<media::dram>::open(medium);
  constexpr std::uint64_t keys = 64;
  for (std::uint64_t key = 0; key < keys; key += 4) ASSERT_EQ(list.insert(key, key), outcome::inserted);
  std::atomic<unsigned> writing{2};
  std::string wrong;
  std::uint64_t scans = 0;
  run_threads(3, [&](unsigned t) {
    if (t != 0) {
      random source(t);
      for (int i = 0; i < 150'000; ++i) {
        const std::uint64_t key = source.below(keys / 4) * 4 + 1 + source.below(3);
        source.one_in(2) ? list.insert(key, key) : list.erase(key);
      }
      --writing;
      return;
    }
    std::array<indexes::entry, keys> got;
    for (; writing > 0; ++scans) {
      const std::size_t count = list.scan(0, got);
      std::uint64_t stays = 0;
      for (std::size_t i = 0; i < count; ++i) {
        if (i > 0 && got[i].key <= got[i - 1].key) wrong = "keys do not ascend";
        if (got[i].value != got[i].key) wrong = "a value of another key";
        if (got[i].key == stays) stays += 4;
      }
      if (stays != keys) wrong = "misses key " + std::to_string(stays);
    }
  });
  EXPECT_EQ(wrong, "") << "in one of " << scans << " scans";
  EXPECT_TRUE(list.check().ok());
}

// All threads on one key: each insert that succeeds is matched by one erase.
TYPED_TEST(skip_lists, S2_a_storm_around_one_key_leaves_it_there_once_or_not_at_all) {
  media::dram medium;
  auto list = TestFixture::template index<media::dram>::open(medium);
  std::atomic<std::int64_t> balance{0};
  std::atomic<std::uint64_t> wrong{0};
  run_threads(4, [&](unsigned t) {
    random source(t);
    for (int i = 0; i < 60'000; ++i) {
      const std::uint64_t key = 7;
      switch (source.below(5)) {
        case 0: balance += list.insert(key, 5) == outcome::inserted ? 1 : 0; break;
        case 1: balance -= list.erase(key) == outcome::erased ? 1 : 0; break;
        case 2: list.update(key, 6); break;
        case 3:
          if (const auto value = list.find(key); value && *value != 5 && *value != 6) ++wrong;
          break;
        default: {
          std::array<indexes::entry, 3> got;
          if (list.scan(0, got) > 1) ++wrong;
        }
      }
    }
  });
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(balance, list.find(7) ? 1 : 0);
  EXPECT_EQ(list.size(), list.find(7) ? 1U : 0U);
  EXPECT_TRUE(list.check().ok());
}

// A7: what is erased makes room for what comes, within a run and over many.
TYPED_TEST(skip_lists, A7_nodes_of_erased_keys_are_used_again) {
  medium_under_test<crash_medium> under;
  std::uint64_t after_the_first = 0;
  for (std::uint64_t run = 0; run < 10; ++run) {
    if (run % 3 == 2) under.reopen();
    auto list = TestFixture::template index<crash_medium>::open(*under.medium);
    for (std::uint64_t cycle = 0; cycle < 10; ++cycle) {
      for (std::uint64_t key = 0; key < 3000; ++key) ASSERT_EQ(list.insert(key * 977, key), outcome::inserted);
      for (std::uint64_t key = 0; key < 3000; ++key) ASSERT_EQ(list.erase(key * 977), outcome::erased);
    }
    const std::uint64_t bytes = list.stats().medium_bytes;
    if (run == 0) after_the_first = bytes;
    // Persistent towers: the nodes of the slab that is judged first are free too late for the insert that judges it.
    const std::uint64_t slabs_more = std::is_same_v<TypeParam, in_dram> ? 1 : run;
    EXPECT_LE(bytes, after_the_first + slabs_more * (std::uint64_t{64} << 10)) << "in run " << run;
  }
}

TYPED_TEST(skip_lists, recovery_of_a_million_keys_is_fast_and_finds_them_all) {
  constexpr std::uint64_t keys = 1'000'000;
  medium_under_test<media::pmem> under;
  {
    auto list = TestFixture::template index<media::pmem>::open(*under.medium);
    for (std::uint64_t key = 0; key < keys; ++key)
      ASSERT_EQ(list.insert(key * 0x9e3779b97f4a7c15U, key), outcome::inserted);
    for (std::uint64_t key = 0; key < keys; key += 3) ASSERT_EQ(list.erase(key * 0x9e3779b97f4a7c15U), outcome::erased);
  }
  under.reopen();
  const auto start = std::chrono::steady_clock::now();
  auto list = TestFixture::template index<media::pmem>::open(*under.medium);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::printf("  opened in %.1f ms\n", took.count());
  const indexes::check_report report = list.check();
  ASSERT_TRUE(report.ok()) << report.violations.front();
  EXPECT_EQ(report.entries, keys - (keys + 2) / 3);
  for (std::uint64_t key = 0; key < keys; key += 1009)
    EXPECT_EQ(list.find(key * 0x9e3779b97f4a7c15U).has_value(), key % 3 != 0);
}

}  // namespace
}  // namespace pmlab::tests
