// The mode that an adaptive cache chooses, on a clock that the test moves.
#include <pmlab/cache/async_cache.hpp>
#include <pmlab/media/dram.hpp>

#include <cstdint>

#include <gtest/gtest.h>

#include "cache/tests/wrapped_index.hpp"
#include "support/operations.hpp"

namespace pmlab::tests::adaptive_test {
namespace {

using cache::mode;

std::uint64_t time_now = 0;
std::uint64_t search_time = 0;
// Each look at the clock takes some time too: that of the cache.
std::uint64_t tick() { return time_now += 50; }

class adaptive : public testing::Test {
 protected:
  using cached = cache::async_cache<wrapped_index>;
  static constexpr std::uint64_t keys = 20'000;

  adaptive() {
    wrapped_index::on_call = [] { time_now += search_time; };
  }
  ~adaptive() override {
    wrapped_index::on_call = [] {};
  }

  static cache::options options() {
    cache::options o;
    o.lookup = mode::adaptive;
    o.size = cache::capacity::entries(keys / 10);
    o.fillers = 0;
    o.sample_period = 4;
    o.window = 256;
    o.now = tick;
    return o;
  }

  void read(cached& index, bool skewed, std::uint64_t reads) {
    for (std::uint64_t i = 0; i < reads; ++i) {
      const std::uint64_t key = skewed && !source_.one_in(10) ? source_.below(keys / 50) : source_.below(keys);
      index.find(key);
      index.run_fills();
    }
  }
  static std::uint64_t in_mode(const cached& index, mode m) {
    std::uint64_t count = 0;
    for (std::uint64_t key = 0; key < keys; ++key) count += index.mode_of(key) == m ? 1 : 0;
    return count;
  }

  random source_{5};
  media::dram medium_;
};

TEST_F(adaptive, goes_round_a_cache_that_hardly_hits_and_comes_back) {
  auto index = cached::open(medium_, "x", options());
  for (std::uint64_t key = 0; key < keys; ++key) index.insert(key, key);
  // A hit costs as much as a search: there is nothing to gain.
  search_time = 0;
  read(index, true, 100'000);
  const std::uint64_t switches = index.cache_statistics().switches;
  EXPECT_EQ(in_mode(index, mode::bypass), 0U) << "costs are equal: no reason to leave serial";
  EXPECT_EQ(switches, 0U);
  search_time = 1000;
  read(index, true, 100'000);
  EXPECT_EQ(in_mode(index, mode::serial), keys) << "hits pay";
}

// A span of time below 0 would be the longest of all, and its mode the dearest for hundreds of windows.
TEST_F(adaptive, a_clock_that_jumps_back_makes_no_mode_dear) {
  auto index = cached::open(medium_, "x", options());
  for (std::uint64_t key = 0; key < keys; ++key) index.insert(key, key);
  search_time = 1000;
  constexpr std::uint64_t jump = 500'000'000;
  time_now = 1'000 * jump;
  std::uint64_t jumps = 100;
  wrapped_index::on_call = [&jumps] {
    time_now += search_time;
    if (jumps > 0) {
      --jumps;
      time_now -= jump;
    }
  };
  read(index, true, 100'000);
  EXPECT_EQ(jumps, 0U);
  EXPECT_EQ(in_mode(index, mode::serial), keys) << "hits pay";
  EXPECT_EQ(index.cache_statistics().switches, 0U);
}

// The tests set the times of lookups.
TEST_F(adaptive, bypasses_where_misses_cost_more_than_searches) {
  cache::chooser chooser(options(), false, false);
  std::uint32_t tick_of_thread = 0;
  std::uint64_t cached_lookups = 0;
  const auto run = [&](double hit_share, std::uint64_t lookups) {
    cached_lookups = 0;
    for (std::uint64_t i = 0; i < lookups; ++i) {
      const std::uint64_t number = source_.below(4096);
      if (chooser.bypasses_all(number)) continue;
      const cache::chooser::plan p = chooser.next(number, ++tick_of_thread);
      cached_lookups += p.how != mode::bypass ? 1 : 0;
      if (!p.timed) continue;
      const bool hit = static_cast<double>(source_.below(1000)) < 1000 * hit_share;
      if (p.how == mode::bypass)
        chooser.record(number, p.how, false, 1000);
      else
        chooser.record(number, p.how, hit, hit ? 60 : 1100);
    }
  };
  run(0.02, 100'000);
  run(0.02, 100'000);
  EXPECT_EQ(chooser.current(0), mode::bypass);
  EXPECT_LT(cached_lookups, 100'000U / 20) << "leaders and samples alone use the cache";
  run(0.7, 100'000);
  run(0.7, 100'000);
  EXPECT_EQ(chooser.current(0), mode::serial);
  const std::uint64_t before = chooser.switches();
  // 10 % cost 996 in the cache and 1000 outside: within the margins, nothing changes.
  run(0.1, 200'000);
  EXPECT_LE(chooser.switches() - before, 8U) << "it swings";
}

// A popular key that the processor's own caches hold is found at once in the index, too: that is not typical of the
// others.
TEST_F(adaptive, compares_modes_on_the_same_keys) {
  cache::chooser chooser(options(), false, false);
  constexpr std::uint64_t popular =
      cache::chooser::leader_period + 1;  // a set that is not used while its shard bypasses
  std::uint32_t tick_of_thread = 0;
  const auto run = [&](std::uint64_t hits_of_ten) {
    for (std::uint64_t i = 0; i < 2'000'000; ++i) {
      const std::uint64_t number = source_.one_in(2) ? popular : source_.below(4096);
      if (chooser.bypasses_all(number)) continue;
      const cache::chooser::plan p = chooser.next(number, ++tick_of_thread);
      if (!p.timed) continue;
      const bool hit = source_.below(10) < hits_of_ten || (number == popular && hits_of_ten != 0);
      if (p.how == mode::bypass)
        chooser.record(number, p.how, false, number == popular ? 50 : 1000);
      else
        chooser.record(number, p.how, hit, hit ? 60 : 1100);
    }
  };
  run(0);
  ASSERT_EQ(chooser.current(popular), mode::bypass);
  run(7);
  EXPECT_EQ(chooser.current(popular), mode::serial);
}

// Nearly all lookups, once every shard bypasses: they are not even counted.
TEST_F(adaptive, goes_round_with_all_but_the_leaders_once_every_shard_bypasses) {
  cache::chooser chooser(options(), false, false);
  std::uint32_t tick_of_thread = 0;
  const auto all_go_round = [&] {
    bool all = true;
    for (std::uint64_t number = 0; number < 4096; ++number) {
      const bool leads = number % cache::chooser::leader_period == 0;
      EXPECT_FALSE(leads && chooser.bypasses_all(number)) << number;
      all = all && (leads || chooser.bypasses_all(number));
    }
    return all;
  };
  EXPECT_FALSE(all_go_round()) << "serial at first";
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const std::uint64_t number = source_.below(4096);
    const cache::chooser::plan p = chooser.next(number, ++tick_of_thread);
    if (p.timed) chooser.record(number, p.how, false, p.how == mode::bypass ? 1000 : 1100);
  }
  ASSERT_EQ(chooser.current(0), mode::bypass);
  EXPECT_TRUE(all_go_round());
}

TEST_F(adaptive, takes_a_helper_where_misses_are_many) {
  cache::chooser chooser(options(), false, true);
  std::uint32_t tick_of_thread = 0;
  for (std::uint64_t i = 0; i < 200'000; ++i) {
    const std::uint64_t number = source_.below(4096);
    const cache::chooser::plan p = chooser.next(number, ++tick_of_thread);
    if (!p.timed) continue;
    const bool hit = source_.one_in(2);
    const std::uint64_t miss = p.how == mode::parallel ? 1000 : 1300;
    chooser.record(number, p.how, hit && p.how != mode::bypass, p.how == mode::bypass ? 1000 : hit ? 60 : miss);
  }
  for (std::uint64_t number = 0; number < 256; ++number) EXPECT_EQ(chooser.current(number), mode::parallel);
}

}  // namespace
}  // namespace pmlab::tests::adaptive_test
