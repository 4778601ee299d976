// The overhead of the harness over a hand-written loop. Ratios within one run, best of several tries: the
// machine does other things too, and what it does besides only ever makes things slower.
#include "tools/bench/summary.hpp"
#include "tools/microbench/cpu_features.hpp"
#include "tools/microbench/figures.hpp"
#include "tools/microbench/native_kernels.hpp"
#include "tools/microbench/places.hpp"
#include <pmlab/media/clock.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace pmlab::microbench {
namespace {

constexpr int tries = 15;

std::uint64_t now() { return media::fast_clock::instance().now_after_loads(); }

// The two in turns, so that they meet the same machine. Returns the least time of each.
template <class One, class Other>
std::pair<double, double> least_of_both(One&& one, Other&& other) {
  double first = 1e300;
  double second = 1e300;
  for (int i = 0; i < tries; ++i) {
    const std::uint64_t start = now();
    one();
    const std::uint64_t middle = now();
    other();
    first = std::min(first, static_cast<double>(middle - start));
    second = std::min(second, static_cast<double>(now() - middle));
  }
  return {first, second};
}

struct memory {
  explicit memory(std::size_t size) : bytes(size) {
    start = static_cast<std::byte*>(std::aligned_alloc(std::size_t{2} << 20, bytes));
    ::madvise(start, bytes, MADV_HUGEPAGE);
    std::fill_n(start, bytes, std::byte{1});
  }
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  ~memory() { std::free(start); }
  std::byte* start;
  std::size_t bytes;
};

// In a cache, where nothing hides the cost of the loop.
TEST(Overhead, OfRandomLoadsIsBelowTwoNanoseconds) {
  constexpr std::uint64_t places = 128;
  constexpr std::uint64_t accesses = 200'000;
  const memory m(places * 64);
  bench_case c;
  std::vector<std::uint32_t> table(places);
  fill_places(table, places, c, 1, 0);
  const auto k = make_native_kernels({load_kind::scalar, store_kind::plain, 8, false});
  walk way{.base = m.start, .distance = 64, .places = places, .table = table.data(), .bytes = 8};
  const auto [harness, by_hand] = least_of_both(
      [&] { k->load(way, accesses); },
      [&] {
        for (std::uint64_t done = 0; done < accesses; done += places)
          for (const std::uint32_t place : table)
            static_cast<void>(*reinterpret_cast<const volatile std::uint64_t*>(m.start + place * std::uint64_t{64}));
      });
  const double ns = (harness - by_hand) / accesses / 1000;
  RecordProperty("ns_per_access", std::to_string(ns));
  std::printf("random loads of 8 bytes: harness %.3f ns, by hand %.3f ns an access\n", harness / accesses / 1000,
              by_hand / accesses / 1000);
  EXPECT_LT(ns, 2);
}

TEST(Overhead, OfStoresIsBelowTwoNanoseconds) {
  constexpr std::uint64_t places = 128;
  constexpr std::uint64_t accesses = 200'000;
  const memory m(places * 64);
  const auto k = make_native_kernels({load_kind::scalar, store_kind::plain, 8, false});
  walk way{.base = m.start, .distance = 64, .places = places, .bytes = 8};
  const auto [harness, by_hand] = least_of_both([&] { k->store(way, accesses); },
                                                [&] {
                                                  for (std::uint64_t done = 0; done < accesses; done += places)
                                                    for (std::uint64_t place = 0; place < places; ++place)
                                                      *reinterpret_cast<volatile std::uint64_t*>(m.start + place * 64) =
                                                          1;
                                                });
  std::printf("sequential stores of 8 bytes: harness %.3f ns, by hand %.3f ns an access\n", harness / accesses / 1000,
              by_hand / accesses / 1000);
  EXPECT_LT((harness - by_hand) / accesses / 1000, 2);
}

// Neighbours of this machine come and go in the cache that all share: neither the least time nor the median of one loop
// says anything about the other, but the two side by side do.
TEST(Overhead, ChaseIsWithinFivePercentOfAPlainPointerChase) {
  // Each walks all of the cycle from the same place, and so finds the same in the caches.
  constexpr std::uint64_t places = std::uint64_t{1} << 20;
  constexpr int pairs = 5;
  const memory m(places * 64);
  link_chase(m.start, places, 64, 64, 1);
  const auto k = make_native_kernels({load_kind::scalar, store_kind::plain, 64, false});
  walk way{.base = m.start, .distance = 64, .places = places, .bytes = 64};
  const void* volatile plain = m.start;
  double ratio = 0;
  for (int attempt = 0; attempt < 4; ++attempt) {
    std::vector<double> ratios;
    for (int i = 0; i < pairs; ++i) {
      const std::uint64_t start = now();
      k->chase(way, places);
      const std::uint64_t middle = now();
      const void* place = plain;
      for (std::uint64_t n = 0; n < places; ++n) place = *static_cast<const void* const volatile*>(place);
      plain = place;
      ratios.push_back(static_cast<double>(middle - start) / static_cast<double>(now() - middle));
    }
    ratio = bench::median(ratios);
    std::printf("chase through 64 MB: harness / by hand %.3f\n", ratio);
    if (ratio > 0.95 && ratio < 1.05) break;
  }
  EXPECT_LT(ratio, 1.05);
  EXPECT_GT(ratio, 0.95);
}

// Loads and nothing else: work on the data costs memory bandwidth in the last-level cache.
[[gnu::target("avx512f")]] void load_by_hand(const memory& m) {
  for (const std::byte* at = m.start; at != m.start + m.bytes; at += 256)
    asm volatile(
        "vmovdqa64 (%0), %%zmm0; vmovdqa64 64(%0), %%zmm1; vmovdqa64 128(%0), %%zmm2; vmovdqa64 192(%0), %%zmm3"
        :
        : "r"(at)
        : "xmm0", "xmm1", "xmm2", "xmm3", "memory");
  asm volatile("vzeroupper");
}

TEST(Overhead, BandwidthIsWithinFivePercentOfAHandWrittenAvx512Loop) {
  if (!features_of_this_cpu().avx512) GTEST_SKIP() << "this CPU has no AVX-512";
  const memory m(std::size_t{32} << 20);
  const std::uint64_t places = m.bytes / 256;
  const auto k = make_native_kernels({load_kind::avx512, store_kind::plain, 256, false});
  walk way{.base = m.start, .distance = 256, .places = places, .bytes = 256};
  const auto [harness, by_hand] = least_of_both([&] { k->load(way, places); }, [&] { load_by_hand(m); });
  std::printf("32 MB in order: harness %.2f GiB/s, by hand %.2f GiB/s\n",
              static_cast<double>(m.bytes) / harness * 931.32, static_cast<double>(m.bytes) / by_hand * 931.32);
  EXPECT_LT(harness / by_hand, 1.05);
}

}  // namespace
}  // namespace pmlab::microbench
