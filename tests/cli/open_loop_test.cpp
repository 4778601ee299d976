// Operations that begin at given times: a stall shows in all that it delayed.
#include "bench/catalogue/operation_loop.hpp"
#include "bench/catalogue/pacer.hpp"

#include "run_small.hpp"
#include "small_map.hpp"

#include <chrono>
#include <cstdint>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::tests {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t picoseconds = 1'000'000'000'000;
constexpr milliseconds stall(200);

// Answers at once, but for one find, which takes 200 ms.
struct stalls_once {
  std::optional<std::uint64_t> find(std::uint64_t key) {
    if (key == 100) std::this_thread::sleep_for(stall);
    return key;
  }
  indexes::outcome insert(std::uint64_t, std::uint64_t) { return indexes::outcome::exists; }
  indexes::outcome update(std::uint64_t, std::uint64_t) { return indexes::outcome::absent; }
};

// How many of 500 finds took longer than 20 ms.
std::uint64_t slow_finds(bench::pacer* pace) {
  std::vector<workload::operation> finds(500);
  for (std::uint64_t i = 0; i < finds.size(); ++i) finds[i].key = i;
  workload::latency_histogram latencies;
  stalls_once target;
  bench::execute(target, {.operations = finds, .latencies = &latencies, .latency_period = 1, .pace = pace},
                 bench::no_hooks{});
  std::uint64_t slow = 0;
  latencies.for_each([&](std::uint64_t ns, std::uint64_t count) { slow += ns > 20'000'000 ? count : 0; });
  EXPECT_EQ(latencies.count(), finds.size());
  return slow;
}

TEST(OpenLoop, a_stall_shows_in_every_operation_that_it_delayed) {
  EXPECT_LT(slow_finds(nullptr), 5U);
  // A find each millisecond: those that should have begun in the first 180 ms of the stall are slow.
  bench::pacer pace(media::fast_clock::instance().now(), picoseconds / 1000);
  EXPECT_GE(slow_finds(&pace), 175U);
}

TEST(OpenLoop, operations_do_not_begin_before_their_time) {
  const media::fast_clock& clock = media::fast_clock::instance();
  const std::uint64_t start = clock.now();
  bench::pacer pace(start + picoseconds / 100, picoseconds / 500);
  for (std::uint64_t i = 0; i < 20; ++i) {
    const std::uint64_t begins = pace.wait(clock);
    EXPECT_EQ(begins, start + picoseconds / 100 + i * (picoseconds / 500));
    EXPECT_GE(clock.now(), begins);
  }
  EXPECT_EQ(pace.lag(start), 0U);
  EXPECT_EQ(pace.lag(start + picoseconds), picoseconds - picoseconds / 100 - 20 * (picoseconds / 500));
}

TEST(OpenLoop, a_phase_keeps_the_rate_and_counts_its_intervals) {
  bench::bench_options o = small_run(bench::parse_phases("read"));
  o.operations = 2'000;
  o.rate = 10'000;
  o.interval_seconds = 0.02;
  o.threads = {2};
  const bench::bench_report report = run(o, {describe("a")});
  ASSERT_EQ(report.results.size(), 2U);
  const bench::phase_result& r = report.results[1];
  EXPECT_LE(r.throughput, 10'100);
  EXPECT_GE(r.seconds, 0.19);
  EXPECT_EQ(r.latency.samples, r.operations);
  EXPECT_GE(r.intervals.size(), 9U);
  EXPECT_EQ(std::accumulate(r.intervals.begin(), r.intervals.end(), std::uint64_t{0}), r.operations);
}

TEST(OpenLoop, a_rate_that_is_not_reached_is_said) {
  bench::bench_options o = small_run(bench::parse_phases("read"));
  o.rate = 1'000'000'000'000;
  const bench::bench_report report = run(o, {describe("a")});
  ASSERT_FALSE(report.remarks.empty());
  EXPECT_NE(report.remarks.back().find("--rate"), std::string::npos);
}

}  // namespace
}  // namespace pmlab::tests
