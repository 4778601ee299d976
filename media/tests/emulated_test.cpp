// emulated: delays follow the profile. Ratios within one run and wide tolerances, so that other work on the
// machine cannot fail a test, and a medium that charges nothing cannot pass one.
#include <pmlab/base/error.hpp>
#include <pmlab/media/clock.hpp>
#include <pmlab/media/counted.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/emulated.hpp>
#include "bench/devices/calibration.hpp"
#include "bench/devices/profile_file.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <sched.h>

#include <gtest/gtest.h>

namespace pmlab::media {
namespace {

static_assert(medium<emulated<dram>>);
static_assert(medium<counted<emulated<dram>>>);
static_assert(medium<emulated<counted<dram>>>);

constexpr std::size_t line_count = 1 << 17;  // 8 MB: more than the modelled CPU cache

// Aligned memory that the tests walk through.
class lines {
 public:
  lines() : memory_((line_count + 1) * cache_line_bytes) {
    const auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
    offset_ = (cache_line_bytes - start % cache_line_bytes) % cache_line_bytes;
  }
  [[nodiscard]] std::byte* operator[](std::size_t i) { return &memory_[offset_ + i % line_count * cache_line_bytes]; }

 private:
  std::vector<std::byte> memory_;
  std::size_t offset_ = 0;
};

// Best of five: nanoseconds of one call of `operation(i)`, with i in no order.
template <class Medium, class Operation>
double best_ns(Medium& m, Operation&& operation) {
  constexpr int runs = 10;
  constexpr std::size_t calls = 400;
  double best = 1e18;
  std::uint64_t i = 1;
  for (int r = 0; r < runs; ++r) {
    const auto from = std::chrono::steady_clock::now();
    for (std::size_t c = 0; c < calls; ++c) {
      i = i * 6364136223846793005U + 1442695040888963407U;
      operation(i >> 40);
    }
    m.end_operation();
    const auto spent = std::chrono::steady_clock::now() - from;
    best = std::min(best, std::chrono::duration<double, std::nano>(spent).count() / calls);
  }
  return best;
}

template <class Medium>
double visit_ns(Medium& m, lines& memory) {
  return best_ns(m, [&](std::size_t i) { m.annotate_read(memory[i], 64); });
}

template <class Medium>
double persist_ns(Medium& m, lines& memory) {
  return best_ns(m, [&](std::size_t i) {
    m.flush(memory[i % 16], 64);
    m.fence();
  });
}

// Ten times slower than the device, so that the machine's own times disappear beside it.
device_profile slow(const char* name) { return scaled(load_profile(name), 10); }

TEST(Emulated, ReadsTakeWhatTheProfileSays) {
  lines memory;
  emulated<dram> m(slow("aep"));
  const double read = visit_ns(m, memory);
  EXPECT_GT(read, 0.8 * 3050);
  EXPECT_LT(read, 2.5 * 3050);
  EXPECT_GT(m.emulation().waited_ns, 0U);
  EXPECT_GT(m.emulation().charged, 1000U);
}

TEST(Emulated, TwiceTheLatencyTakesTwiceAsLong) {
  lines memory;
  // Each turn on media whose modelled caches hold nothing yet; the middle one, since something else may take the core.
  std::array<double, 5> ratios;
  for (double& ratio : ratios) {
    emulated<dram> one(slow("aep"));
    emulated<dram> two(scaled(slow("aep"), 2));
    const double of_one = visit_ns(one, memory);
    ratio = visit_ns(two, memory) / of_one;
  }
  std::sort(ratios.begin(), ratios.end());
  EXPECT_GT(ratios[2], 1.6);
  EXPECT_LT(ratios[2], 2.4);
}

TEST(Emulated, LinesOfOneVisitOverlap) {
  lines memory;
  emulated<dram> m(slow("aep"));
  const double one = visit_ns(m, memory);
  const double four = best_ns(m, [&](std::size_t i) { m.annotate_read(memory[i / 4 * 4], 256); });
  EXPECT_LT(four, 2 * one);
}

TEST(Emulated, PrefetchedReadsOverlap) {
  lines memory;
  const auto eight = [&](bool prefetch) {
    emulated<dram> m(slow("aep-6"));  // a cache that holds nothing yet
    return best_ns(m, [&](std::size_t i) {
      if (prefetch)
        for (std::size_t k = 0; k < 8; ++k) m.prefetch(memory[i + k * 1001], 8);
      for (std::size_t k = 0; k < 8; ++k) m.annotate_read(memory[i + k * 1001], 8);
    });
  };
  const double together = eight(true);
  const double one_by_one = eight(false);
  EXPECT_LT(together, one_by_one / 2);
  EXPECT_GT(together, 0.8 * 3050);
}

TEST(Emulated, WhatTheCacheHoldsIsNotCharged) {
  lines memory;
  emulated<dram> m(slow("aep"));
  m.annotate_read(memory[0], 64);
  const std::uint64_t charged = m.emulation().charged;
  EXPECT_EQ(charged, 1U);
  m.end_operation();
  for (int i = 0; i < 100; ++i) m.annotate_read(memory[0], 64);
  EXPECT_LE(m.emulation().charged, charged + 1);
}

// The search for lines in the model's cache takes time, too: a tree of large nodes has many, whose device has none. It
// passes while the device is waited for; on some CPUs it takes longer than that.
TEST(Emulated, TheSearchOfTheModelledCacheTakesNoTimeOfTheIndex) {
  lines memory;
  constexpr std::size_t cached_lines = 1 << 13;
  std::array<double, 5> ratios;
  for (double& ratio : ratios) {
    emulated<dram> m(slow("aep"));
    for (std::size_t i = 0; i < cached_lines; i += 8) m.annotate_read(memory[i], 512);
    m.end_operation();
    // Lines that the model's cache does not hold, others in the second measurement.
    const auto miss = [&](std::size_t i) {
      m.annotate_read(memory[cached_lines + i % (line_count - cached_lines)], 64);
    };
    const auto hits = [&](std::size_t i) {
      for (std::size_t node = 0; node < 40; ++node) m.annotate_read(memory[(i + 11 * node) * 8 % cached_lines], 512);
    };
    const double alone = best_ns(m, miss);
    const double search = best_ns(m, hits);
    const double beside = best_ns(m, [&](std::size_t i) {
      hits(i);
      miss(~i);
    });
    ratio = beside / std::max(alone, search);
  }
  std::sort(ratios.begin(), ratios.end());
  // The sum of the two would be 1.8 times the longer one.
  EXPECT_LT(ratios[2], 1.4) << ratios[0] << " to " << ratios[4];
}

TEST(Emulated, WritesTakeWhatTheProfileSays) {
  lines memory;
  emulated<dram> classic(slow("classic"));
  emulated<dram> plain(slow("dram"));
  const double classic_ns = persist_ns(classic, memory);
  const double plain_ns = persist_ns(plain, memory);
  EXPECT_GT(classic_ns, 0.8 * 2850);
  EXPECT_GT(classic_ns / plain_ns, 3);
  EXPECT_LT(classic_ns / plain_ns, 7);
}

TEST(Emulated, WhereTheCachesAreSavedAStoreIsChargedAndNoFlush) {
  lines memory;
  device_profile saved = slow("aep");
  saved.persistence = persistence_domain::eadr;
  emulated<counted<dram>> m(saved);
  EXPECT_EQ(persistence_of(m), persistence_domain::eadr);
  emulated<dram> flushing(slow("aep"));
  EXPECT_LT(persist_ns(m, memory), persist_ns(flushing, memory) / 2);
  EXPECT_GT(m.inner().total().lines_flushed, 0U) << "what is inside decides for itself";
  // More lines than the modelled cache holds: they are fetched, and those that make room written back.
  const auto before = m.device_work();
  m.begin_operation();
  for (std::size_t i = 0; i < 2 * saved.cpu_cache_bytes / 64; ++i) m.flush(memory[i], 64);
  m.end_operation();
  EXPECT_GT(m.device_work().granules_read, before.granules_read + 1000);
  EXPECT_GT(m.device_work().granules_written, before.granules_written + 1000);
}

TEST(Emulated, ReadsOfAProfileThatReadsLikeDramAreTheMachinesOwn) {
  lines memory;
  emulated<dram> m(slow("classic"));
  for (std::size_t i = 0; i < 1000; ++i) m.annotate_read(memory[i * 37], 64);
  EXPECT_EQ(m.emulation().charged, 0U);
}

TEST(Emulated, NonTemporalCopiesAreCharged) {
  lines memory;
  emulated<dram> m(slow("aep"));
  const double copy = best_ns(m, [&](std::size_t i) {
    m.copy(memory[i / 4 * 4], memory[(i / 4 + 500) * 4], 256);
    m.fence();
  });
  EXPECT_GT(copy, 0.8 * 1800);
}

TEST(Emulated, FenceWithoutFlushIsFree) {
  emulated<dram> m(slow("aep"));
  for (int i = 0; i < 1000; ++i) m.fence();
  EXPECT_EQ(m.emulation().charged, 0U);
}

TEST(Emulated, DebtIsPaidWhenAnOperationEnds) {
  lines memory;
  emulated<dram> m(scaled(load_profile("aep"), 2));
  const auto from = std::chrono::steady_clock::now();
  m.begin_operation();
  m.annotate_read(memory[0], 64);
  m.end_operation();
  EXPECT_GE(std::chrono::steady_clock::now() - from, std::chrono::nanoseconds(500));
}

TEST(Emulated, ComposesWithCounted) {
  lines memory;
  counted<emulated<dram>> outside(slow("aep"));
  emulated<counted<dram>> inside(slow("aep"));
  EXPECT_EQ(outside.name(), "emulated:aep");
  EXPECT_EQ(inside.name(), "emulated:aep");
  EXPECT_EQ(outside.inner().inner().name(), "dram");
  const auto use = [&](auto& m) {
    m.begin_operation();
    m.annotate_read(memory[0], 256);
    m.flush(memory[1], 64);
    m.fence();
    m.end_operation();
    typename std::remove_reference_t<decltype(m)>::publication change(m);
    EXPECT_NE(change.allocate(64, 64), nullptr);
    change.commit();
  };
  use(outside);
  use(inside);
  const counts expected{.operations = 1,
                        .lines_read = 4,
                        .device_lines_read = outside.total().device_lines_read,
                        .lines_flushed = 1,
                        .device_lines_written = 1,
                        .fences = 1,
                        .publications = 1};
  EXPECT_EQ(outside.total(), expected);
  EXPECT_EQ(inside.inner().total(), expected);
  EXPECT_GT(outside.inner().emulation().charged, 0U);
  EXPECT_EQ(outside.inner().emulation().charged, inside.emulation().charged);
}

TEST(Emulated, WarnsOfMoreThreadsThanCores) {
  cpu_set_t all;
  CPU_ZERO(&all);
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  const auto cores = static_cast<std::size_t>(CPU_COUNT(&all));
  lines memory;
  emulated<dram> m(load_profile("aep"));
  const auto use_with = [&](std::size_t threads) {
    std::atomic<std::size_t> arrived{0};
    std::vector<std::thread> running;
    running.reserve(threads);
    for (std::size_t t = 0; t < threads; ++t)
      running.emplace_back([&, t] {
        m.annotate_read(memory[t * 100], 64);
        ++arrived;
        while (arrived < threads) std::this_thread::yield();
      });
    for (std::thread& t : running) t.join();
  };
  use_with(cores);
  EXPECT_EQ(m.warning(), "");
  use_with(cores + 1);
  EXPECT_NE(m.warning().find(std::to_string(cores + 1) + " threads"), std::string::npos) << m.warning();
}

TEST(Emulated, ThreadsShareTheDevice) {
  lines memory;
  emulated<dram> m(slow("aep"));
  std::vector<std::thread> running;
  running.reserve(2);
  for (int t = 0; t < 2; ++t)
    running.emplace_back([&, t] {
      for (std::size_t i = 0; i < 2000; ++i) {
        m.annotate_read(memory[i * 7 + static_cast<std::size_t>(t) * 60000], 64);
        m.flush(memory[i % 8], 64);
        m.fence();
      }
      m.end_operation();
    });
  for (std::thread& t : running) t.join();
  EXPECT_GE(m.emulation().charged, 4000U);
}

TEST(FastClock, AgreesWithTheSteadyClock) {
  const fast_clock& clock = fast_clock::instance();
  const auto steady_from = std::chrono::steady_clock::now();
  const std::uint64_t from = clock.now();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const std::uint64_t spent = clock.now() - from;
  const auto steady = std::chrono::duration<double, std::pico>(std::chrono::steady_clock::now() - steady_from).count();
  EXPECT_NEAR(static_cast<double>(spent) / steady, 1, 0.02);
}

TEST(FastClock, NeverRunsBackwards) {
  const fast_clock& clock = fast_clock::instance();
  std::uint64_t last = clock.now();
  for (int i = 0; i < 100000; ++i) {
    const std::uint64_t now = clock.now_after_loads();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(Calibration, MeasuresTheMachineAndReachesASlowDevice) {
  const calibration c = calibrate(load_profile("aep"), {.scale = 8});
  EXPECT_GT(c.host.read_ns, 10);
  EXPECT_GT(c.host.read_small_pages_ns, 10);
  EXPECT_GT(c.host.flush_fence_ns, 1);
  EXPECT_GT(c.host.timer_ns, 0.5);
  EXPECT_GT(c.model_ns, 1);
  EXPECT_DOUBLE_EQ(c.profile.scale, 8);
  ASSERT_EQ(c.rows.size(), 5U);
  EXPECT_GT(c.rows[0].target_ns, 8 * 300);
  EXPECT_GT(c.rows[0].error_percent(), -20);
  EXPECT_LT(c.rows[0].error_percent(), 60);
  EXPECT_FALSE(c.notes.empty()) << "a scaled device has a note";
}

TEST(Calibration, ScalesByTheMachinesDramAndNeverMakesADeviceFaster) {
  const device_profile aep = load_profile("aep");
  EXPECT_DOUBLE_EQ(automatic_scale(aep, {.read_ns = 3 * aep.dram_read_latency_ns}), 3);
  EXPECT_DOUBLE_EQ(automatic_scale(aep, {.read_ns = 50}), 1);
}

TEST(Calibration, RefusesANegativeScale) {
  EXPECT_THROW(static_cast<void>(calibrate(load_profile("aep"), {.scale = -1})), error);
}

}  // namespace
}  // namespace pmlab::media
