// The cache itself: fills, refusals, drops and closing.
#include <pmlab/cache/async_cache.hpp>
#include <pmlab/cache/detail/fill.hpp>
#include <pmlab/cache/eviction/chosen.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/media/dram.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cache/tests/wrapped_index.hpp"
#include "support/history.hpp"
#include "support/watchdog.hpp"

namespace pmlab::tests::cache_test {
namespace {

using cache::capacity;
using cache::mode;
using indexes::outcome;
using cached = cache::async_cache<indexes::cceh<media::dram>>;

// Fills wait until the test lets them go.
cache::options held() {
  cache::options o;
  o.size = capacity::entries(1000);
  o.fillers = 0;
  o.queue = 8192;
  return o;
}

TEST(cache, a_second_find_is_a_hit) {
  media::dram medium;
  auto index = cached::open(medium, "x", held());
  ASSERT_EQ(index.insert(1, 10), outcome::inserted);
  EXPECT_EQ(index.find(1), 10U);
  EXPECT_EQ(index.run_fills(), 1U);
  EXPECT_EQ(index.find(1), 10U);
  const cache::statistics s = index.cache_statistics();
  EXPECT_EQ(s.hits, 1U);
  EXPECT_EQ(s.misses, 1U);
  EXPECT_EQ(s.fills, 1U);
  EXPECT_EQ(s.lookups[static_cast<std::size_t>(mode::serial)], 2U);
}

TEST(cache, keys_that_are_not_there_are_not_cached) {
  media::dram medium;
  auto index = cached::open(medium, "x", held());
  EXPECT_EQ(index.find(1), std::nullopt);
  EXPECT_EQ(index.run_fills(), 0U);
  index.insert(1, 5);
  EXPECT_EQ(index.find(1), 5U);
}

TEST(cache, a_fill_from_before_an_update_is_refused) {
  media::dram medium;
  auto index = cached::open(medium, "x", held());
  index.insert(1, 10);
  ASSERT_EQ(index.find(1), 10U);
  ASSERT_EQ(index.update(1, 11), outcome::updated);
  index.run_fills();
  EXPECT_EQ(index.cache_statistics().stale, 1U);
  EXPECT_EQ(index.cache_statistics().fills, 0U);
  EXPECT_EQ(index.find(1), 11U);
  EXPECT_TRUE(index.check().ok());
}

TEST(cache, a_fill_from_before_an_erase_revives_nothing) {
  media::dram medium;
  auto index = cached::open(medium, "x", held());
  index.insert(1, 10);
  ASSERT_EQ(index.find(1), 10U);
  ASSERT_EQ(index.erase(1), outcome::erased);
  ASSERT_EQ(index.insert(1, 12), outcome::inserted);
  index.run_fills();
  EXPECT_EQ(index.cache_statistics().stale, 1U);
  EXPECT_EQ(index.find(1), 12U);
}

TEST(cache, a_change_of_a_cached_key_changes_both) {
  media::dram medium;
  auto index = cached::open(medium, "x", held());
  index.insert(1, 10);
  index.find(1);
  index.run_fills();
  ASSERT_EQ(index.update(1, 11), outcome::updated);
  EXPECT_EQ(index.find(1), 11U);
  ASSERT_EQ(index.upsert(1, 12), outcome::updated);
  EXPECT_EQ(index.find(1), 12U);
  EXPECT_EQ(index.cache_statistics().hits, 2U);
  ASSERT_EQ(index.erase(1), outcome::erased);
  EXPECT_EQ(index.find(1), std::nullopt);
  EXPECT_TRUE(index.check().ok());
}

TEST(cache, a_full_queue_drops_and_counts) {
  media::dram medium;
  cache::options o = held();
  o.queue = 4;
  auto index = cached::open(medium, "x", o);
  for (std::uint64_t key = 0; key < 10; ++key) index.insert(key, key);
  for (std::uint64_t key = 0; key < 10; ++key) EXPECT_EQ(index.find(key), key);
  EXPECT_EQ(index.cache_statistics().drops, 6U);
  EXPECT_EQ(index.run_fills(), 4U);
}

// Q1 to Q3: so small that it is full most of the time.
TEST(cache, its_queue_gives_every_fill_out_once_and_whole) {
  const watchdog hang(std::chrono::seconds(60), "a fill was overwritten before it was popped");
  constexpr std::uint64_t threads = 2;
  constexpr std::uint64_t fills = 20'000;
  cache::detail::fill_queue queue(8);
  std::atomic<bool> failed{false};
  std::vector<std::thread> pushing;
  for (std::uint64_t t = 0; t < threads; ++t)
    pushing.emplace_back([&queue, &failed, t] {
      for (std::uint64_t i = 0; i < fills; ++i)
        while (!failed && !queue.push({i * threads + t, ~i, 3 * i})) std::this_thread::yield();
    });
  std::array<std::uint64_t, threads> next{};
  for (std::uint64_t taken = 0; taken < threads * fills;) {
    const std::optional<cache::detail::fill> f = queue.pop();
    if (!f) {
      std::this_thread::yield();
      continue;
    }
    ++taken;
    const std::uint64_t i = next[f->key % threads]++;
    if (f->key / threads != i || f->value != ~i || f->gate != 3 * i) {
      ADD_FAILURE() << "fill " << i << " of thread " << f->key % threads << " is " << f->key << ' ' << f->value;
      failed = true;
      break;
    }
  }
  for (std::thread& t : pushing) t.join();
  EXPECT_TRUE(queue.is_empty());
  EXPECT_EQ(queue.reserved(), threads * fills);
}

TEST(cache, find_batch_says_what_find_says_and_fills) {
  media::dram medium;
  auto index = cached::open(medium, "x", held());
  std::vector<std::uint64_t> keys(200);
  for (std::uint64_t i = 0; i < keys.size(); ++i) keys[i] = i;
  for (std::uint64_t key = 0; key < 150; ++key) index.insert(key, key + 1);
  for (int round = 0; round < 2; ++round) {
    std::vector<std::optional<std::uint64_t>> values(keys.size(), 7U);
    index.find_batch(keys, values);
    for (std::uint64_t key = 0; key < keys.size(); ++key)
      EXPECT_EQ(values[key], key < 150 ? std::optional(key + 1) : std::nullopt);
    index.run_fills();
  }
  EXPECT_EQ(index.cache_statistics().fills, 150U);
  EXPECT_GE(index.cache_statistics().hits, 145U);
}

cache::options filled_by_callers() {
  cache::options o;
  o.size = capacity::entries(1000);
  o.fill_by = cache::filling::caller;
  return o;
}

TEST(cache, a_caller_that_fills_makes_the_second_find_a_hit) {
  media::dram medium;
  auto index = cached::open(medium, "x", filled_by_callers());
  for (std::uint64_t key = 0; key < 100; ++key) index.insert(key, key + 1);
  EXPECT_EQ(index.find(1), 2U);
  EXPECT_EQ(index.find(1), 2U);
  std::vector<std::uint64_t> keys(50);
  for (std::uint64_t i = 0; i < keys.size(); ++i) keys[i] = 2 * i;
  std::vector<std::optional<std::uint64_t>> values(keys.size());
  index.find_batch(keys, values);
  for (const std::uint64_t key : keys) EXPECT_EQ(index.find(key), key + 1);
  const cache::statistics s = index.cache_statistics();
  EXPECT_EQ(s.fills, 51U);
  EXPECT_EQ(s.misses, 51U);
  EXPECT_EQ(s.hits, 51U);
  EXPECT_TRUE(index.check().ok());
  index.close();
  EXPECT_EQ(index.find(99), 100U);
  EXPECT_EQ(index.cache_statistics().fills, 51U) << "closed: nothing new is cached";
}

// V3, where no queue lies between.
TEST(cache, what_a_caller_found_before_an_update_is_refused) {
  media::dram medium;
  auto index = cache::async_cache<wrapped_index>::open(medium, "x", filled_by_callers());
  index.insert(1, 10);
  bool searching = true;
  wrapped_index::on_call = [&] {
    if (!std::exchange(searching, false)) return;
    index.update(1, 11);
  };
  index.find(1);
  wrapped_index::on_call = [] {};
  EXPECT_EQ(index.cache_statistics().stale, 1U);
  EXPECT_EQ(index.cache_statistics().fills, 0U);
  EXPECT_EQ(index.find(1), 11U);
  EXPECT_TRUE(index.check().ok());
}

TEST(cache, closing_with_fills_in_flight_leaves_an_index_that_works) {
  const watchdog hang(std::chrono::seconds(60), "");
  // Each find of the mode parallel waits for another thread: few enough for a machine that is busy.
  constexpr std::uint64_t keys = 500;
  for (int round = 0; round < 20; ++round) {
    media::dram medium;
    cache::options o;
    o.size = capacity::entries(1000);
    o.queue = 4096;
    o.fillers = 2;
    o.rest = std::chrono::seconds(100);
    o.lookup = round % 2 == 0 ? mode::serial : mode::parallel;
    o.helpers = 1;
    auto index = cached::open(medium, "x", o);
    for (std::uint64_t key = 0; key < keys; ++key) index.insert(key, key);
    for (std::uint64_t key = 0; key < keys; ++key) ASSERT_EQ(index.find(key), key);
    index.close();
    const cache::statistics s = index.cache_statistics();
    // Each was put in, refused as one that was there, or dropped: none is twice.
    EXPECT_LE(s.fills + s.drops, keys);
    for (std::uint64_t key = 0; key < keys; ++key) ASSERT_EQ(index.find(key), key);
    ASSERT_EQ(index.update(7, 8), outcome::updated);
    ASSERT_EQ(index.find(7), 8U);
    EXPECT_TRUE(index.check().ok());
  }
}

void change_modes_under_load(cache::filling fill_by) {
  const watchdog hang(std::chrono::seconds(120), "");
  media::dram medium;
  cache::options o;
  o.fill_by = fill_by;
  o.size = capacity::entries(64);
  o.helpers = 2;
  o.fillers = 2;
  o.window = 64;
  auto index = cached::open(medium, "x", o);
  std::atomic<bool> done{false};
  std::thread switcher([&] {
    for (std::size_t m = 0; !done; m = (m + 1) % cache::mode_names.size()) {
      index.set_mode(static_cast<mode>(m));
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  });
  history_options options;
  options.threads = 4;
  options.operations_per_thread = 20'000;
  for (std::uint64_t i = 0; i < 8; ++i) options.contended.push_back(1000 * i + 7);
  for (std::uint64_t i = 0; i < 100; ++i) options.filler.push_back(10 * i);
  EXPECT_EQ(check_concurrent_history(index, options), "");
  done = true;
  switcher.join();
  index.settle();
  const indexes::check_report report = index.check();
  EXPECT_TRUE(report.ok()) << report.violations.front();
}

TEST(cache, modes_may_change_under_load) { change_modes_under_load(cache::filling::background); }
TEST(cache, modes_may_change_while_callers_fill) { change_modes_under_load(cache::filling::caller); }

TEST(cache, an_entry_takes_at_most_32_bytes) {
  media::dram medium;
  cache::options o = held();
  for (const cache::eviction e : {cache::eviction::lru, cache::eviction::clock, cache::eviction::s3_fifo}) {
    o.size = capacity::entries(100'000);
    o.queue = 4096;
    o.evict = e;
    auto index = cache::async_cache<indexes::cceh<media::dram>, cache::chosen_eviction>::open(medium, "x", o);
    const cache::statistics s = index.cache_statistics();
    EXPECT_GE(s.capacity, 100'000U);
    EXPECT_LE(static_cast<double>(s.bytes) / static_cast<double>(s.capacity), 32);
    EXPECT_GE(index.stats().dram_bytes, s.bytes);
  }
}

TEST(cache, a_share_is_of_what_the_index_holds_or_will_hold) {
  media::dram medium;
  cache::options o = held();
  o.size = capacity::share(0.1);
  {
    o.expected_entries = 10'000;
    auto index = cached::open(medium, "x", o);
    EXPECT_NEAR(static_cast<double>(index.cache_statistics().capacity), 1000, 7);
    for (std::uint64_t key = 0; key < 5000; ++key) index.insert(key, key);
  }
  o.expected_entries = 0;
  auto index = cached::open(medium, "x", o);
  EXPECT_NEAR(static_cast<double>(index.cache_statistics().capacity), 500, 7);
}

TEST(cache, an_index_that_throws_leaves_the_cache_usable) {
  media::dram medium;
  cache::options o = held();
  o.helpers = 1;
  auto index = cache::async_cache<wrapped_index>::open(medium, "x", o);
  index.insert(1, 10);
  index.find(1);
  index.run_fills();
  wrapped_index::on_call = [] { throw std::runtime_error("told to"); };
  EXPECT_THROW(index.update(1, 11), std::runtime_error);
  for (const mode m : {mode::serial, mode::parallel}) {
    index.set_mode(m);
    EXPECT_THROW(index.find(1), std::runtime_error);
  }
  wrapped_index::on_call = [] {};
  EXPECT_EQ(index.find(1), 10U);
  EXPECT_EQ(index.update(1, 12), outcome::updated);
  EXPECT_EQ(index.find(1), 12U);
  EXPECT_TRUE(index.check().ok());
}

}  // namespace
}  // namespace pmlab::tests::cache_test
