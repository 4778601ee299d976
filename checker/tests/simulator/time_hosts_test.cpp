// Several hosts on one memory, their time: what each has in its own caches, what passes between them, what they share.
#include "checker/simulator/time/memory_hierarchy.hpp"
#include "bench/devices/profile_file.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::simulator {
namespace {

constexpr std::uintptr_t memory_start = persistent_memory::area_start;
constexpr std::uintptr_t dram_start = mapped_by_libraries;
constexpr std::uintptr_t line_bytes = media::cache_line_bytes;
constexpr bool persistent = true;
constexpr picoseconds long_after = 1'000'000'000;

double ns(picoseconds time) { return static_cast<double>(time) / 1000; }

media::device_profile without_tails(media::device_profile profile) {
  profile.read_p99_ns = profile.read_p99_9_ns = profile.page_walk_ns = 0;
  return profile;
}

// Each host has two threads: cores 1 and 2 are host 0's, 3 and 4 host 1's.
struct pod {
  explicit pod(coherence mode, unsigned count = 2)
      : hosts{.count = count, .threads = 2, .coherence = mode, .start = memory_start},
        memory(profile, media::load_profile("dram"), 2 * count + 1, {}, 0, &hosts) {}

  // Each at a time of its own, when nothing is under way any more.
  double load_ns(unsigned core, std::uintptr_t address) {
    now = memory.fence(core, now + long_after);  // loads near each other overlap
    return ns(memory.load(core, address, 8, persistent_memory::in_area(address), now) - now);
  }
  double store_ns(unsigned core, std::uintptr_t address) {
    now += long_after;
    return ns(memory.fence(core, memory.store(core, address, 8, persistent, now)) - now);
  }
  double exchange_ns(unsigned core, std::uintptr_t address) {
    now += long_after;
    return ns(memory.exchange_on_device(core, address, now) - now);
  }
  double publish_ns(unsigned core, std::uintptr_t address) {
    now += long_after;
    return ns(memory.fence(core, memory.flush(core, address, now)) - now);
  }
  double refresh_ns(unsigned core, std::uintptr_t address, std::size_t lines) {
    constexpr bool evicts = true, orders_loads = true;
    picoseconds at = now += long_after;
    for (std::size_t i = 0; i < lines; ++i) at = memory.flush(core, address + i * line_bytes, at, evicts);
    return ns(memory.fence(core, at, orders_loads) - now);
  }

  const media::device_profile profile = without_tails(media::load_profile("cxl-pod"));
  timed_hosts hosts;
  memory_hierarchy memory;
  picoseconds now = 0;
};

constexpr std::uintptr_t word = memory_start + (std::uintptr_t{1} << 20);  // beyond what is coherent in part

TEST(TimeOfHosts, ALineThatIsNotCoherentIsEachHostsOwn) {
  for (const coherence mode : {coherence::partial, coherence::none}) {
    pod p(mode);
    EXPECT_GE(p.load_ns(1, word), p.profile.read_latency_ns);
    EXPECT_LE(p.load_ns(2, word), 61) << "of the same host";
    EXPECT_GE(p.load_ns(3, word), p.profile.read_latency_ns) << "the other host's caches have it not";
    static_cast<void>(p.store_ns(1, word));
    EXPECT_LT(p.load_ns(3, word), 5) << "it keeps the line that another host stores to";
  }
}

TEST(TimeOfHosts, ACoherentLineComesByWayOfTheDevice) {
  pod p(coherence::full);
  static_cast<void>(p.load_ns(1, word));
  EXPECT_NEAR(p.load_ns(3, word), p.profile.host_invalidation_ns, 1) << "the first host may have modified it";
  EXPECT_GE(p.load_ns(4, word), 59);
  EXPECT_LE(p.load_ns(4, word), 61) << "of the same host";
  EXPECT_NEAR(p.store_ns(1, word), p.profile.host_invalidation_ns, 1) << "both have it, unmodified";
  EXPECT_NEAR(p.load_ns(3, word), p.profile.host_transfer_ns, 1) << "modified";
  EXPECT_LT(p.load_ns(1, word), 5) << "both have it now";
  EXPECT_GE(p.load_ns(2, word), 59);
  static_cast<void>(p.store_ns(2, word));
  EXPECT_NEAR(p.store_ns(3, word), p.profile.host_transfer_ns, 1);
}

TEST(TimeOfHosts, APartOfTheMemoryIsCoherent) {
  pod p(coherence::partial);
  for (const std::uintptr_t inside : {memory_start, memory_start + p.hosts.coherent_bytes - line_bytes}) {
    static_cast<void>(p.store_ns(1, inside));
    EXPECT_NEAR(p.load_ns(3, inside), p.profile.host_transfer_ns, 1);
  }
  const std::uintptr_t outside = memory_start + p.hosts.coherent_bytes;
  static_cast<void>(p.store_ns(1, outside));
  EXPECT_LT(p.load_ns(3, outside), p.profile.host_invalidation_ns);
}

TEST(TimeOfHosts, ARefreshTakesTheLineFromTheHostsOwnCachesAlone) {
  pod p(coherence::none);
  for (const unsigned core : {1U, 2U, 3U}) static_cast<void>(p.load_ns(core, word));
  EXPECT_NEAR(p.refresh_ns(1, word, 8), 8 * p.profile.line_invalidation_ns + p.profile.load_fence_ns, .01);
  EXPECT_GE(p.load_ns(2, word), p.profile.read_latency_ns) << "of the same host";
  EXPECT_LT(p.load_ns(3, word), 5) << "of another one";
}

TEST(TimeOfHosts, APublicationWaitsForTheDevice) {
  pod p(coherence::none);
  static_cast<void>(p.store_ns(1, word));
  EXPECT_NEAR(p.publish_ns(1, word), p.profile.flush_accept_ns, 5);
  EXPECT_LT(p.publish_ns(1, word), 2) << "it is clean";
}

TEST(TimeOfHosts, TheDeviceExchangesAroundTheCaches) {
  pod p(coherence::full);
  EXPECT_NEAR(p.exchange_ns(1, word), p.profile.device_exchange_ns, 1);
  static_cast<void>(p.load_ns(1, word));
  EXPECT_NEAR(p.exchange_ns(1, word), p.profile.device_exchange_ns, 1) << "no other host has it";
  EXPECT_GE(p.load_ns(1, word), p.profile.read_latency_ns) << "its own copy is gone";
  EXPECT_NEAR(p.exchange_ns(3, word), p.profile.host_invalidation_ns, 1) << "another host has to give it up";
  EXPECT_GE(p.load_ns(2, word), p.profile.read_latency_ns);
}

TEST(TimeOfHosts, DramIsEachHostsOwn) {
  pod p(coherence::full);
  EXPECT_GE(p.load_ns(1, dram_start), 90);
  EXPECT_LE(p.load_ns(2, dram_start), 61);
  EXPECT_GE(p.load_ns(3, dram_start), 90);
  EXPECT_EQ(p.memory.device_work().granules_read, 0U);
}

// So many locked instructions on one coherent word, by turns of two cores.
picoseconds hot_word(unsigned first, unsigned second) {
  pod p(coherence::full);
  std::vector<std::pair<picoseconds, unsigned>> cores = {{0, first}, {0, second}};
  for (int i = 0; i < 2000; ++i) {
    auto& [now, core] = *std::min_element(cores.begin(), cores.end());
    now = p.memory.read_modify_write(core, word, 8, persistent, now);
  }
  return std::min(cores[0].first, cores[1].first);
}

TEST(TimeOfHosts, AHotWordOfTwoHostsIsSlowerThanOneOfTwoCores) {
  EXPECT_GT(hot_word(1, 3), 8 * hot_word(1, 2));
  EXPECT_EQ(hot_word(1, 3), hot_word(1, 3)) << "it repeats";
}

// Loads of lines that lie side by side, by one core of each host, each host on lines of its own.
double gigabytes_per_second(unsigned count) {
  pod p(coherence::none, count);
  std::vector<std::pair<picoseconds, unsigned>> cores;
  for (unsigned h = 0; h < count; ++h)
    for (unsigned t = 0; t < 2; ++t) cores.emplace_back(0, 1 + 2 * h + t);
  std::vector<std::uintptr_t> next(2 * count + 1);
  constexpr std::uint64_t loads = 40'000;
  for (std::uint64_t i = 0; i < loads; ++i) {
    auto& [now, core] = *std::min_element(cores.begin(), cores.end());
    const std::uintptr_t address = memory_start + (std::uintptr_t{core} << 24) + line_bytes * next[core]++;
    now = p.memory.load(core, address, 8, persistent, now);
  }
  return static_cast<double>(loads * line_bytes) / ns(std::min_element(cores.begin(), cores.end())->first);
}

TEST(TimeOfHosts, TheDevicesBandwidthIsThatOfAllHostsTogether) {
  const double one = gigabytes_per_second(1), two = gigabytes_per_second(2), eight = gigabytes_per_second(8);
  std::printf("1, 2, 8 hosts: %.1f, %.1f, %.1f GB/s\n", one, two, eight);
  EXPECT_NEAR(two / one, 2, .2);
  EXPECT_LT(eight, 37);
}

}  // namespace
}  // namespace pmlab::simulator
