// The memory of a simulated machine against its profiles: latencies, coherence, bandwidth, repeatability.
#include "checker/simulator/time/memory_hierarchy.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/random.hpp>
#include "bench/devices/profile_file.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::simulator {
namespace {

using media::device_profile;
using media::load_profile;

constexpr std::uintptr_t line_bytes = media::cache_line_bytes;
constexpr std::uintptr_t mib = std::uintptr_t{1} << 20;
constexpr std::uintptr_t start = mapped_by_libraries;  // start of the memory that is accessed: in pages of 2 MB
constexpr bool persistent = true;
constexpr bool dram = false;

void expect_within(double percent, const std::string& what, double expected, double reached) {
  std::printf("%-56s %9.2f %9.2f %+6.1f %%\n", what.c_str(), expected, reached, 100 * (reached / expected - 1));
  EXPECT_LE(std::abs(reached / expected - 1) * 100, percent) << what;
}

double ns(picoseconds time) { return static_cast<double>(time) / 1000; }

// A core's clock, its random numbers and its accesses.
struct runner {
  unsigned core;
  picoseconds now = 0;
  splitmix64 random{core};
  std::uint64_t steps = 0;
};

// The core that is furthest behind makes its next step, until all together have made `steps`. Returns the lowest clock.
picoseconds run(std::vector<runner>& cores, std::uint64_t steps, const std::function<void(runner&)>& step) {
  const auto behind = [](const runner& a, const runner& b) { return a.now < b.now; };
  for (std::uint64_t i = 0; i < steps; ++i) {
    runner& next = *std::min_element(cores.begin(), cores.end(), behind);
    step(next);
    ++next.steps;
  }
  return std::min_element(cores.begin(), cores.end(), behind)->now;
}

std::vector<runner> all_cores(const memory_hierarchy& memory) {
  std::vector<runner> cores;
  for (unsigned i = 0; i < memory.cores(); ++i) cores.push_back({.core = i});
  return cores;
}

// Pages are numbered in the order of their first touch: the kernel gives a program's memory in ascending order.
void touch(memory_hierarchy& memory, std::uintptr_t bytes, bool kind) {
  for (std::uintptr_t at = 0; at < bytes; at += 4096) {
    picoseconds ignored = memory.write_around(0, start + at, 8, kind, 0);
    ignored = memory.fence(0, ignored);
  }
}

// One load after the other, each of a random line.
double random_load_ns(const device_profile& device, std::uintptr_t range, bool kind) {
  constexpr std::uint64_t loads = 200000;
  memory_hierarchy memory(device, load_profile("dram"), 1);
  touch(memory, range, kind);
  splitmix64 random(1);
  picoseconds now = 1'000'000'000'000;
  for (std::uintptr_t at = 0; at < std::min(range, 4 * mib); at += line_bytes)
    now = memory.load(0, start + at, 8, kind, now);
  const picoseconds begin = now;
  for (std::uint64_t i = 0; i < loads; ++i)
    now = memory.load(0, start + random.below(range / line_bytes) * line_bytes, 8, kind, now);
  return ns(now - begin) / loads;
}

TEST(MemoryHierarchy, LoadsCostWhatTheProfileSays) {
  const device_profile aep = load_profile("aep");
  // Beyond the device's translation buffer, within the CPU's: the rest is the device model's own test.
  expect_within(10, "random load of aep, 400 MiB", 379, random_load_ns(aep, 400 * mib, persistent));
  expect_within(10, "random load of DRAM, 400 MiB", 101, random_load_ns(aep, 400 * mib, dram));
  expect_within(10, "random load of the second level, 512 KiB", 4, random_load_ns(aep, mib / 2, dram));
  expect_within(1, "random load of the first level, 16 KiB", 1.2, random_load_ns(aep, mib / 64, dram));
}

// A layout begins elsewhere: other lines share a set, and a page lies on another DIMM.
TEST(MemoryHierarchy, AnotherFirstFrameMovesPages) {
  const auto time_from = [](std::uint32_t first_frame) {
    memory_hierarchy memory(load_profile("aep-6"), load_profile("dram"), 1, {}, first_frame);
    picoseconds now = 0;
    splitmix64 random(5);
    for (int i = 0; i < 20'000; ++i) now = memory.load(0, start + random.below(64 * mib) / 64 * 64, 8, persistent, now);
    return now;
  };
  EXPECT_EQ(time_from(0), time_from(0));
  EXPECT_NE(time_from(0), time_from(3));
}

TEST(MemoryHierarchy, ADeviceThatReadsTwiceAsSlowlyDoes) {
  device_profile slow = load_profile("aep");
  slow.read_latency_ns *= 2;
  const double before = random_load_ns(load_profile("aep"), 400 * mib, persistent);
  expect_within(1, "random load with 2 x the read latency", before + 305, random_load_ns(slow, 400 * mib, persistent));
}

TEST(MemoryHierarchy, NearbyLoadsAreUnderWayTogether) {
  const device_profile aep = load_profile("aep");
  memory_hierarchy memory(aep, load_profile("dram"), 1);
  constexpr std::uintptr_t range = 400 * mib;
  touch(memory, range, persistent);
  // Published, less the page walks of a larger range.
  for (const auto& [bytes, published] : {std::pair{256U, 474.0 - 45}, std::pair{512U, 512.0 - 45}}) {
    splitmix64 random(3);
    constexpr std::uint64_t blocks = 50000;
    const picoseconds begin = 1'000'000'000'000'000 + bytes * 1'000'000'000'000;
    picoseconds now = begin;
    for (std::uint64_t i = 0; i < blocks; ++i) {
      const std::uintptr_t at = start + random.below(range / bytes) * bytes;
      for (std::uintptr_t offset = 0; offset < bytes; offset += 16)
        now = memory.load(0, at + offset, 16, persistent, now);
    }
    expect_within(12, "block of " + std::to_string(bytes) + " B", published, ns(now - begin) / blocks);
  }
}

double persist_ns(const device_profile& device, bool kind) {
  memory_hierarchy memory(device, load_profile("dram"), 1);
  constexpr std::uint64_t times = 2000;
  picoseconds now = 0;
  picoseconds sum = 0;
  for (std::uint64_t i = 0; i < times; ++i) {
    const std::uintptr_t at = start + i * 7919 % 4096 * line_bytes;
    now = memory.load(0, at, 8, kind, now);
    const picoseconds begin = now;
    now = memory.store(0, at, 8, kind, now);
    now = memory.flush(0, at, now);
    now = memory.fence(0, now);
    sum += now - begin;
    now += 1'000'000;
  }
  return ns(sum) / times;
}

TEST(MemoryHierarchy, PersistingCostsWhatTheProfileSays) {
  expect_within(10, "store + clwb + fence of aep", 62, persist_ns(load_profile("aep"), persistent));
  expect_within(10, "store + clwb + fence of DRAM", 57, persist_ns(load_profile("aep"), dram));
  device_profile slow = load_profile("aep");
  slow.flush_accept_ns *= 2;
  expect_within(10, "store + clwb + fence with 2 x the time", 124, persist_ns(slow, persistent));
}

TEST(MemoryHierarchy, WhereTheCachesAreSavedAFlushDoesNothing) {
  device_profile saved = load_profile("aep");
  saved.persistence = media::persistence_domain::eadr;
  memory_hierarchy memory(saved, load_profile("dram"), 1);
  picoseconds now = memory.load(0, start, 8, persistent, 1'000'000);
  now = memory.store(0, start, 8, persistent, now);
  EXPECT_EQ(memory.flush(0, start, now), now);
  EXPECT_TRUE(memory.is_private(0, start, 8, true)) << "the line stays in the cache";
  // A non-temporal store still goes to the device, and its fence waits.
  const picoseconds around = memory.write_around(0, start + 4096, line_bytes, persistent, now);
  EXPECT_GE(ns(memory.fence(0, around) - now), saved.ntstore_accept_ns);
  EXPECT_LT(persist_ns(saved, persistent), 10);
}

TEST(MemoryHierarchy, WhatWasFlushedIsReadFromTheDevice) {
  for (const char* name : {"aep", "optane-200"}) {
    const device_profile device = load_profile(name);
    memory_hierarchy memory(device, load_profile("dram"), 1);
    picoseconds now = memory.store(0, start, 8, persistent, 1'000'000);
    now = memory.fence(0, memory.flush(0, start, now));
    const bool cached = memory.is_private(0, start, 8, false);
    EXPECT_EQ(cached, !device.flush_drops_cached_line) << name;
    const picoseconds end = memory.load(0, start, 8, persistent, now);
    if (cached)
      EXPECT_EQ(end - now, core_costs{}.first_level) << name;
    else
      EXPECT_GE(ns(end - now), device.read_latency_ns) << name;
  }
}

TEST(MemoryHierarchy, AFlushOfACleanLineWritesNothing) {
  memory_hierarchy memory(load_profile("optane-200"), load_profile("dram"), 1);
  picoseconds now = memory.load(0, start, 8, persistent, 1'000'000);
  EXPECT_EQ(memory.fence(0, memory.flush(0, start, now)) - now, 2 * core_costs{}.instructions);
  now = memory.store(0, start, 8, persistent, now + 1'000'000);
  EXPECT_GT(memory.fence(0, memory.flush(0, start, now)) - now, 10 * core_costs{}.instructions);
}

TEST(MemoryHierarchy, NonTemporalStores) {
  memory_hierarchy memory(load_profile("aep"), load_profile("dram"), 1);
  picoseconds now = 1'000'000;
  EXPECT_FALSE(memory.is_private(0, start, 64, false));
  for (std::uintptr_t word = 0; word < 64; word += 8) now = memory.write_around(0, start + word, 8, persistent, now);
  expect_within(10, "ntstore + fence", 90, ns(memory.fence(0, now) - 1'000'000));
  EXPECT_FALSE(memory.is_private(0, start, 64, false)) << "it bypassed the caches";
}

// Time of a non-temporal store and its fence, in words of 8 bytes.
double write_around_ns(const device_profile& device, std::uintptr_t words) {
  memory_hierarchy memory(device, load_profile("dram"), 1);
  picoseconds now = 1'000'000;
  for (std::uintptr_t i = 0; i < words; ++i) now = memory.write_around(0, start + 8 * i, 8, persistent, now);
  return ns(memory.fence(0, now) - 1'000'000);
}

TEST(MemoryHierarchy, APartOfALineIsReadFirstAndLeavesInPieces) {
  device_profile device = load_profile("aep");
  const double read = device.read_latency_ns + device.translation_miss_ns;
  const double word = write_around_ns(device, 1);
  expect_within(2, "8 B", read + device.ntstore_accept_ns, word);
  expect_within(2, "32 B: three more", word + 3 * device.line_write_transfer_ns, write_around_ns(device, 4));
  EXPECT_LT(write_around_ns(device, 8), word) << "a whole line";
  device.partial_write_bytes = 0;
  expect_within(1, "8 B, if parts are as whole lines", device.ntstore_accept_ns, write_around_ns(device, 1));
}

TEST(MemoryHierarchy, APartOfALineLeavesWhenAnotherLineIsStoredTo) {
  for (const std::uintptr_t next : {start + line_bytes, start}) {
    memory_hierarchy memory(load_profile("aep"), load_profile("dram"), 1);
    picoseconds now = memory.write_around(0, start, 8, persistent, 1'000'000);
    now = memory.write_around(0, next, line_bytes, persistent, now);
    EXPECT_EQ(memory.device_work().granules_read, next == start ? 0 : 1) << "the rest of the line came in time or not";
    static_cast<void>(memory.fence(0, now));
  }
}

TEST(MemoryHierarchy, ALinePassedBetweenTwoCoresCostsTwoTransfersARound) {
  memory_hierarchy memory(load_profile("aep"), load_profile("dram"), 2);
  constexpr std::uint64_t rounds = 1000;
  picoseconds now = memory.read_modify_write(0, start, 8, dram, 0);
  const picoseconds begin = now;
  for (std::uint64_t i = 0; i < rounds; ++i)
    for (const unsigned core : {1U, 0U}) now = memory.read_modify_write(core, start, 8, dram, now);
  expect_within(1, "ping-pong", 2 * 66, ns(now - begin) / rounds);
}

TEST(MemoryHierarchy, ASharedCounterIsServedInTurn) {
  for (const unsigned cores : {1U, 2U, 8U, 32U}) {
    memory_hierarchy memory(load_profile("aep"), load_profile("dram"), cores);
    std::vector<runner> all = all_cores(memory);
    constexpr std::uint64_t additions = 100000;
    const picoseconds end =
        run(all, additions, [&](runner& r) { r.now = memory.read_modify_write(r.core, start, 8, dram, r.now); });
    expect_within(15, "addition to a counter of " + std::to_string(cores) + " cores", cores == 1 ? 6 : 60,
                  ns(end) / additions);
  }
}

TEST(MemoryHierarchy, CountersOfTheirOwnScaleUnlessTheyShareALine) {
  const auto step_ns = [](std::uintptr_t apart) {
    memory_hierarchy memory(load_profile("aep"), load_profile("dram"), 8);
    std::vector<runner> all = all_cores(memory);
    const picoseconds end = run(all, 80000, [&](runner& r) {
      r.now = memory.load(r.core, start + r.core * apart, 8, dram, r.now);
      r.now = memory.store(r.core, start + r.core * apart, 8, dram, r.now);
    });
    return ns(end) / 10000;
  };
  EXPECT_LT(step_ns(64), 2);
  EXPECT_GT(step_ns(8), 100);
}

TEST(MemoryHierarchy, ReadersOfOneLineDoNotDisturbEachOther) {
  memory_hierarchy memory(load_profile("aep"), load_profile("dram"), 32);
  picoseconds now = memory.store(0, start, 8, dram, 0);
  for (unsigned core = 0; core < 32; ++core) now = memory.load(core, start, 8, dram, now + 1'000'000);
  for (unsigned core = 0; core < 32; ++core) {
    EXPECT_TRUE(memory.is_private(core, start, 8, false)) << core;
    EXPECT_FALSE(memory.is_private(core, start, 8, true)) << core;
    EXPECT_EQ(memory.load(core, start, 8, dram, now) - now, core_costs{}.first_level) << core;
  }
  now = memory.read_modify_write(5, start, 8, dram, now + 1'000'000);
  for (unsigned core = 0; core < 32; ++core) EXPECT_EQ(memory.is_private(core, start, 8, false), core == 5) << core;
  EXPECT_TRUE(memory.is_private(5, start, 8, true));
}

TEST(MemoryHierarchy, PrivateIsWhatTheCoreHasForItself) {
  memory_hierarchy memory(load_profile("aep"), load_profile("dram"), 2);
  EXPECT_FALSE(memory.is_private(0, start, 8, false));
  picoseconds now = memory.load(0, start, 8, dram, 0);
  EXPECT_TRUE(memory.is_private(0, start, 8, false));
  EXPECT_TRUE(memory.is_private(0, start, 8, true)) << "no other core has it";
  EXPECT_FALSE(memory.is_private(1, start, 8, false));
  EXPECT_FALSE(memory.is_private(0, start + 60, 8, false)) << "the next line too";
  now = memory.load(0, start + 64, 8, dram, now);
  EXPECT_TRUE(memory.is_private(0, start + 60, 8, false));
  now = memory.load(1, start, 8, dram, now);
  EXPECT_TRUE(memory.is_private(0, start, 8, false));
  EXPECT_FALSE(memory.is_private(0, start, 8, true)) << "core 1 would notice";
  // Pushed out of the first level, still in the second.
  for (std::uintptr_t i = 1; i <= 64; ++i) now = memory.load(0, start + i * 4096, 8, dram, now);
  EXPECT_TRUE(memory.is_private(0, start, 8, false));
  EXPECT_EQ(memory.load(0, start, 8, dram, now) - now, core_costs{}.second_level);
}

TEST(MemoryHierarchy, APrefetchedLoadWaitsForWhatIsLeft) {
  memory_hierarchy memory(load_profile("aep"), load_profile("dram"), 1);
  picoseconds now = memory.prefetch(0, start, 8, persistent, 1'000'000);
  EXPECT_LE(now - 1'000'000, core_costs{}.instructions);
  const picoseconds at_once = memory.load(0, start, 8, persistent, now);
  EXPECT_GE(at_once - now, 300'000);
  now = memory.prefetch(0, start + 8192, 8, persistent, 2'000'000);
  now = memory.load(0, start + 8192, 8, persistent, now + 1'000'000);
  EXPECT_EQ(now, 3'000'000 + core_costs{}.instructions + core_costs{}.first_level);
}

TEST(MemoryHierarchy, StoresWaitOnlyWhenTheirQueueIsFull) {
  const device_profile aep = load_profile("aep");
  memory_hierarchy memory(aep, load_profile("dram"), 1);
  picoseconds now = 1'000'000;
  for (std::uintptr_t i = 0; i < aep.outstanding_stores; ++i) {
    const picoseconds end = memory.store(0, start + i * 4096, 8, persistent, now);
    EXPECT_EQ(end - now, core_costs{}.instructions);
    now = end;
  }
  EXPECT_GT(memory.store(0, start + 100 * 4096, 8, persistent, now) - now, 200'000);
  EXPECT_GT(memory.fence(0, now) - now, 200'000);
}

// GiB/s of random loads of 64 B, 14 at a time from each core.
double read_bandwidth(const device_profile& device, unsigned cores) {
  constexpr std::uintptr_t range = 192 * mib;  // all caches together hold 3 of these
  device_profile uncached = device;
  uncached.cpu_cache_bytes = 0;
  memory_hierarchy memory(uncached, load_profile("dram"), cores);
  touch(memory, range, persistent);
  std::vector<runner> all = all_cores(memory);
  const std::uint64_t loads = 20000 * cores;
  constexpr picoseconds begin = 1'000'000'000'000;
  for (runner& r : all) r.now = begin;
  const picoseconds end = run(all, loads, [&](runner& r) {
    r.now = memory.prefetch(r.core, start + r.random.below(range / line_bytes) * line_bytes, 8, persistent, r.now);
  });
  return static_cast<double>(loads * line_bytes) / ns(end - begin) / 1.073741824;
}

TEST(MemoryHierarchy, ReadersReachTheBandwidthOfTheDeviceAndNotMore) {
  const device_profile aep = load_profile("aep");
  const double limit = 64 / aep.media_read_ns_per_granule / 1.073741824;
  for (const unsigned cores : {1U, 4U, 16U, 32U}) {
    const double reached = read_bandwidth(aep, cores);
    expect_within(20, "random loads of 64 B, GiB/s, cores: " + std::to_string(cores), limit, reached);
    EXPECT_LE(reached, limit * 1.02) << cores;
  }
  device_profile fast = aep;
  fast.media_read_ns_per_granule /= 2;
  expect_within(15, "16 cores, media twice as fast", 2 * limit, read_bandwidth(fast, 16));
}

TEST(MemoryHierarchy, WhatLeavesTheCachesIsWrittenToTheDevice) {
  memory_hierarchy memory(load_profile("aep"), load_profile("dram"), 1);
  picoseconds now = 0;
  constexpr std::uintptr_t range = 64 * mib;
  for (std::uintptr_t at = 0; at < range; at += line_bytes) now = memory.store(0, start + at, 8, persistent, now);
  const auto granules = static_cast<double>(range) / 256;
  const auto written = static_cast<double>(memory.device_work().granules_written);
  EXPECT_GT(written, 0.9 * granules);
  EXPECT_GT(ns(now), 0.9 * written * load_profile("aep").media_write_ns_per_granule);
}

// A little of everything, on `cores` cores: the sum of the results.
std::uint64_t course(std::uintptr_t base, unsigned cores, std::vector<picoseconds>* all_ends = nullptr) {
  memory_hierarchy memory(load_profile("aep"), load_profile("dram"), cores);
  std::vector<runner> all = all_cores(memory);
  constexpr std::uint64_t steps = 300000;
  std::uint64_t sum = 0;
  run(all, steps, [&](runner& r) {
    const bool kind = r.random.below(2) == 0;
    // Some lines that all access, some pages, and a large range.
    const std::uint64_t sizes[] = {1024, 1 << 18, 1 << 25};
    const std::uintptr_t at =
        base + (kind ? std::uintptr_t{1} << 36 : 0) + r.random.below(sizes[r.random.below(3)]) / 8 * 8;
    const std::size_t bytes = r.random.below(10) == 0 ? 200 : 8;
    switch (r.random.below(9)) {
      case 0: r.now = memory.store(r.core, at, bytes, kind, r.now); break;
      case 1: r.now = memory.read_modify_write(r.core, at, 8, kind, r.now); break;
      case 2: r.now = memory.flush(r.core, at, r.now); break;
      case 3: r.now = memory.fence(r.core, r.now); break;
      case 4: r.now = memory.write_around(r.core, at, bytes, kind, r.now); break;
      case 5: r.now = memory.prefetch(r.core, at, bytes, kind, r.now); break;
      default:
        sum += memory.is_private(r.core, at, bytes, false) ? 1 : 0;
        r.now = memory.load(r.core, at, bytes, kind, r.now);
    }
    if (all_ends != nullptr) all_ends->push_back(r.now);
    sum = sum * 31 + r.now;
  });
  return sum;
}

TEST(MemoryHierarchy, TheSameCallsGiveTheSamePicoseconds) {
  for (const unsigned cores : {1U, 8U, 32U}) EXPECT_EQ(course(start, cores), course(start, cores)) << cores;
}

TEST(MemoryHierarchy, WhereTheKernelPutTheMemoryDoesNotMatter) {
  std::vector<picoseconds> here;
  std::vector<picoseconds> there;
  std::vector<picoseconds> same_page;
  // Globals, stacks: pages of 4 KB, each by itself.
  constexpr std::uintptr_t by_kernel = std::uintptr_t{0x7e} << 32;
  static_cast<void>(course(by_kernel, 8, &here));
  for (const std::uintptr_t pages : {1U, 12345U, 5000011U}) {
    there.clear();
    static_cast<void>(course(by_kernel + pages * 4096, 8, &there));
    EXPECT_EQ(here, there) << pages;
  }
  // The test would notice: within a page, it does matter.
  static_cast<void>(course(by_kernel + 40, 8, &same_page));
  EXPECT_NE(here, same_page);
}

TEST(MemoryHierarchy, TimeOnlyGoesForward) {
  memory_hierarchy memory(load_profile("aep"), load_profile("dram"), 4);
  std::vector<runner> all = all_cores(memory);
  run(all, 100000, [&](runner& r) {
    const picoseconds before = r.now;
    const std::uintptr_t at = start + r.random.below(1 << 20);
    r.now = r.random.below(2) == 0 ? memory.load(r.core, at, 8, persistent, r.now)
                                   : memory.flush(r.core, at, memory.store(r.core, at, 8, persistent, r.now));
    EXPECT_GT(r.now, before);
  });
}

TEST(MemoryHierarchy, RefusesMoreCoresThanItHasBitsFor) {
  EXPECT_THROW(memory_hierarchy(load_profile("aep"), load_profile("dram"), 0), error);
  EXPECT_THROW(memory_hierarchy(load_profile("aep"), load_profile("dram"), core_set::most_cores + 1), error);
}

}  // namespace
}  // namespace pmlab::simulator
