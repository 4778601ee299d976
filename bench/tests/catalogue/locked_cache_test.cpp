// The cache with one lock, which stands beside pmlab's own in the benchmark.
#include "bench/catalogue/locked_cache.hpp"
#include <pmlab/cache/options.hpp>
#include <pmlab/cache/statistics.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/media/dram.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "cache/tests/wrapped_index.hpp"
#include "support/history.hpp"
#include "support/watchdog.hpp"

namespace pmlab::tests::locked_cache_test {
namespace {

using cache::capacity;
using indexes::outcome;
using cached = bench::locked_cache<wrapped_index>;

// Fills wait until the test lets them go.
cache::options held(std::uint64_t entries) {
  cache::options o;
  o.size = capacity::entries(entries);
  o.fillers = 0;
  return o;
}

// Whether a find of `key` is a hit.
bool hits(cached& index, std::uint64_t key) {
  const std::uint64_t before = index.cache_statistics().hits;
  index.find(key);
  return index.cache_statistics().hits != before;
}

void read_in(cached& index, const std::vector<std::uint64_t>& keys) {
  for (const std::uint64_t key : keys) {
    index.find(key);
    index.run_fills();
  }
}

TEST(locked_cache, a_second_find_is_a_hit) {
  media::dram medium;
  auto index = cached::open(medium, "x", held(10));
  ASSERT_EQ(index.insert(1, 10), outcome::inserted);
  EXPECT_EQ(index.find(1), 10U);
  EXPECT_FALSE(hits(index, 1)) << "the fill waits";
  index.run_fills();
  EXPECT_EQ(index.find(1), 10U);
  EXPECT_EQ(index.find(2), std::nullopt);
  index.run_fills();
  const cache::statistics s = index.cache_statistics();
  EXPECT_EQ(s.hits, 1U);
  EXPECT_EQ(s.misses, 3U);
  EXPECT_EQ(s.fills, 1U);
  EXPECT_EQ(s.capacity, 10U);
  EXPECT_TRUE(index.check().ok());
}

TEST(locked_cache, the_least_recently_used_of_all_leaves) {
  media::dram medium;
  auto index = cached::open(medium, "x", held(3));
  for (std::uint64_t key = 1; key <= 5; ++key) index.insert(key, 10 * key);
  read_in(index, {1, 2, 3});
  ASSERT_TRUE(hits(index, 1));
  ASSERT_EQ(index.update(2, 21), outcome::updated);
  read_in(index, {4});
  EXPECT_EQ(index.cache_statistics().evictions, 1U);
  EXPECT_TRUE(hits(index, 1)) << "was read since";
  EXPECT_TRUE(hits(index, 2)) << "was written since";
  EXPECT_TRUE(hits(index, 4));
  EXPECT_FALSE(hits(index, 3));
  EXPECT_TRUE(index.check().ok());
}

TEST(locked_cache, a_change_of_a_cached_key_changes_both) {
  media::dram medium;
  auto index = cached::open(medium, "x", held(10));
  index.insert(1, 10);
  read_in(index, {1});
  ASSERT_EQ(index.update(1, 11), outcome::updated);
  EXPECT_EQ(index.find(1), 11U);
  ASSERT_EQ(index.upsert(1, 12), outcome::updated);
  EXPECT_EQ(index.find(1), 12U);
  EXPECT_EQ(index.cache_statistics().hits, 2U);
  EXPECT_TRUE(index.check().ok());
  ASSERT_EQ(index.erase(1), outcome::erased);
  EXPECT_EQ(index.find(1), std::nullopt);
  EXPECT_EQ(index.upsert(1, 13), outcome::inserted);
  EXPECT_EQ(index.find(1), 13U);
  EXPECT_TRUE(index.check().ok());
}

TEST(locked_cache, a_place_that_was_left_is_used_again) {
  media::dram medium;
  auto index = cached::open(medium, "x", held(2));
  for (std::uint64_t key = 1; key <= 4; ++key) index.insert(key, key);
  read_in(index, {1, 2});
  index.erase(1);
  read_in(index, {3});
  EXPECT_EQ(index.cache_statistics().evictions, 0U);
  EXPECT_TRUE(hits(index, 2));
  EXPECT_TRUE(hits(index, 3));
  EXPECT_TRUE(index.check().ok());
}

TEST(locked_cache, a_fill_from_before_a_write_is_refused) {
  media::dram medium;
  auto index = cached::open(medium, "x", held(10));
  index.insert(1, 10);
  index.insert(2, 20);
  index.find(1);
  index.find(2);
  ASSERT_EQ(index.update(1, 11), outcome::updated);
  ASSERT_EQ(index.erase(2), outcome::erased);
  ASSERT_EQ(index.insert(2, 22), outcome::inserted);
  index.run_fills();
  EXPECT_EQ(index.cache_statistics().stale, 2U);
  EXPECT_EQ(index.find(1), 11U);
  EXPECT_EQ(index.find(2), 22U);
  EXPECT_TRUE(index.check().ok());
}

TEST(locked_cache, an_index_that_throws_leaves_no_entry) {
  media::dram medium;
  auto index = cached::open(medium, "x", held(10));
  index.insert(1, 10);
  read_in(index, {1});
  wrapped_index::on_call = [] { throw std::runtime_error("told to"); };
  EXPECT_THROW(index.update(1, 11), std::runtime_error);
  EXPECT_THROW(index.find(1), std::runtime_error) << "it may hold either value";
  wrapped_index::on_call = [] {};
  EXPECT_EQ(index.update(1, 12), outcome::updated);
  EXPECT_EQ(index.find(1), 12U);
  EXPECT_TRUE(index.check().ok());
}

TEST(locked_cache, histories_under_load_are_linearizable) {
  const watchdog hang(std::chrono::seconds(120), "");
  media::dram medium;
  cache::options o;
  o.size = capacity::entries(64);
  o.fillers = 2;
  auto index = bench::locked_cache<indexes::cceh<media::dram>>::open(medium, "x", o);
  history_options options;
  options.threads = 4;
  options.operations_per_thread = 10'000;
  for (std::uint64_t i = 0; i < 8; ++i) options.contended.push_back(1000 * i + 7);
  for (std::uint64_t i = 0; i < 100; ++i) options.filler.push_back(10 * i);
  EXPECT_EQ(check_concurrent_history(index, options), "");
  const indexes::check_report report = index.check();
  EXPECT_TRUE(report.ok()) << report.violations.front();
  EXPECT_GT(index.cache_statistics().hits, 0U);
}

}  // namespace
}  // namespace pmlab::tests::locked_cache_test
