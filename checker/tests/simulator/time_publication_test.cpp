// The stores of a publication, against a trace of libpmemobj.
//
// Traced at the calls of libpmem, of a pool with blocks of 64 B to 16 KiB; `N around` is a memcpy of N lines around the
// caches. "allocate 1, store 1":
//   1 around | drain | 2 around | drain | flush flush | drain | 1 around | drain
// "allocate 1, store 2": the same with three flushes; "allocate 1, store 3": 3 lines of log and four flushes.
// "allocate 1, release 1, store 1": two headers, 2 lines of log, three flushes. "store 1":
//   drain | persist | flush | drain
#include "checker/simulator/time/publication_cost.hpp"
#include "bench/devices/profile_file.hpp"

#include <cstdio>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::simulator {
namespace {

using kind = published_change::kind;

constexpr std::uintptr_t start = std::uintptr_t{0x7e} << 32;

double publication_ns(const char* profile, const std::vector<published_change>& changes) {
  memory_hierarchy memory(media::load_profile(profile), media::load_profile("dram"), 1);
  constexpr std::uint64_t times = 1000;
  picoseconds now = 0;
  picoseconds sum = 0;
  for (std::uint64_t i = 0; i < times; ++i) {
    std::vector<published_change> moved = changes;
    for (published_change& c : moved)
      if (c.what != kind::store) c.address += i * 1024;
    const picoseconds end = publish(memory, 0, moved, now);
    sum += end - now;
    now = end + 1'000'000;
  }
  return static_cast<double>(sum) / times / 1000;
}

TEST(PublicationCost, LinesOfTheRedoLog) {
  EXPECT_EQ(redo_log_lines(2), 2U);
  EXPECT_EQ(redo_log_lines(3), 2U);
  EXPECT_EQ(redo_log_lines(4), 3U);
}

TEST(PublicationCost, NothingCostsNothing) {
  memory_hierarchy memory(media::load_profile("aep"), media::load_profile("dram"), 1);
  EXPECT_EQ(publish(memory, 0, {}, 1000), 1000U);
}

TEST(PublicationCost, FencesWaitForTheDevice) {
  const std::vector<published_change> one_block = {{kind::allocate, start}, {kind::store, start + (1 << 30)}};
  const std::vector<published_change> one_word = {{kind::store, start}};
  const double block = publication_ns("aep", one_block);
  const double word = publication_ns("aep", one_word);
  std::printf("aep: allocate 1 + store 1 %.0f ns, store 1 %.0f ns\n", block, word);
  std::printf("dram: allocate 1 + store 1 %.0f ns, store 1 %.0f ns\n", publication_ns("dram", one_block),
              publication_ns("dram", one_word));
  // Three times around the caches and fenced, and lines that the last flush dropped.
  EXPECT_GT(block, 360 + 3 * 90 + 305);
  EXPECT_LT(block, 3000);
  EXPECT_GT(word, 110 + 62 + 305);
  EXPECT_LT(word, block);
  EXPECT_LT(publication_ns("dram", one_block), block);
}

TEST(PublicationCost, MoreChangesCostMore) {
  std::vector<published_change> changes;
  double before = 0;
  for (std::uintptr_t i = 0; i < 8; ++i) {
    changes.push_back({i % 2 == 0 ? kind::store : kind::allocate, start + (i << 30)});
    const double now = publication_ns("aep", changes);
    EXPECT_GT(now, before) << i;
    before = now;
  }
}

TEST(PublicationCost, CoresHaveLogsOfTheirOwn) {
  memory_hierarchy memory(media::load_profile("dram"), media::load_profile("dram"), 2);
  const std::vector<published_change> first = {{kind::store, start}, {kind::store, start + 4096}};
  const std::vector<published_change> second = {{kind::store, start + 8192}, {kind::store, start + 12288}};
  picoseconds now = publish(memory, 0, first, 0);
  const picoseconds cold = publish(memory, 1, second, now + 1'000'000) - now;
  now = 100'000'000;
  // Nothing is left in another core's cache, so who publishes next does not matter.
  const picoseconds other = publish(memory, 0, first, now) - now;
  EXPECT_LE(other, cold);
}

}  // namespace
}  // namespace pmlab::simulator
