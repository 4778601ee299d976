// The overhead of the harness over a hand-written loop. The two run in turns, and each pair gives one figure. Other
// work of the machine moves single figures in both directions, so a verdict needs most of them: a spread that crosses
// the limit decides nothing, and the test is skipped with the figures.
#include <pmlab/media/clock.hpp>
#include "bench/engine/summary.hpp"
#include "microbench/memory/cpu_features.hpp"
#include "microbench/memory/figures.hpp"
#include "microbench/memory/native_kernels.hpp"
#include "microbench/memory/places.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace pmlab::microbench {
namespace {

std::uint64_t now() { return media::fast_clock::instance().now_after_loads(); }

// The times of both loops in one pair, in picoseconds.
struct pair_of_times {
  double harness, by_hand;
};

// Runs pairs until the median of `figure` keeps the limit, or four times nine of them do not.
template <class Harness, class ByHand, class Figure>
void expect_at_most(double limit, Harness&& harness, ByHand&& by_hand, Figure&& figure) {
  constexpr int pairs = 9;
  std::vector<double> all;
  for (int attempt = 0; attempt < 4; ++attempt) {
    std::vector<double> figures;
    for (int i = 0; i < pairs; ++i) {
      const std::uint64_t start = now();
      harness();
      const std::uint64_t middle = now();
      by_hand();
      figures.push_back(
          figure(pair_of_times{static_cast<double>(middle - start), static_cast<double>(now() - middle)}));
    }
    all.insert(all.end(), figures.begin(), figures.end());
    const double median = bench::median(figures);
    std::printf("median of %d pairs: %.3f\n", pairs, median);
    if (median <= limit) return;
  }
  std::sort(all.begin(), all.end());
  const double lower_quartile = all[all.size() / 4];
  ASSERT_LE(lower_quartile, limit) << "three quarters of " << all.size() << " pairs are above the limit";
  GTEST_SKIP() << "undecided: the limit of " << limit << " lies between the lower quartile (" << lower_quartile
               << ") and the median of " << all.size() << " pairs";
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
constexpr std::uint64_t accesses = 200'000;
double nanoseconds_more(const pair_of_times& t) { return (t.harness - t.by_hand) / accesses / 1000; }
double ratio(const pair_of_times& t) { return t.harness / t.by_hand; }
double inverse_ratio(const pair_of_times& t) { return 1 / ratio(t); }

TEST(Overhead, OfRandomLoadsIsBelowTwoNanoseconds) {
  constexpr std::uint64_t places = 128;
  const memory m(places * 64);
  bench_case c;
  std::vector<std::uint32_t> table(places);
  fill_places(table, places, c, 1, 0);
  const auto k = make_native_kernels({load_kind::scalar, store_kind::plain, 8, false});
  walk way{.base = m.start, .distance = 64, .places = places, .table = table.data(), .bytes = 8};
  expect_at_most(
      2, [&] { k->load(way, accesses); },
      [&] {
        for (std::uint64_t done = 0; done < accesses; done += places)
          for (const std::uint32_t place : table)
            static_cast<void>(*reinterpret_cast<const volatile std::uint64_t*>(m.start + place * std::uint64_t{64}));
      },
      nanoseconds_more);
}

TEST(Overhead, OfStoresIsBelowTwoNanoseconds) {
  constexpr std::uint64_t places = 128;
  const memory m(places * 64);
  const auto k = make_native_kernels({load_kind::scalar, store_kind::plain, 8, false});
  walk way{.base = m.start, .distance = 64, .places = places, .bytes = 8};
  expect_at_most(
      2, [&] { k->store(way, accesses); },
      [&] {
        for (std::uint64_t done = 0; done < accesses; done += places)
          for (std::uint64_t place = 0; place < places; ++place)
            *reinterpret_cast<volatile std::uint64_t*>(m.start + place * 64) = 1;
      },
      nanoseconds_more);
}

// Each walks all of the cycle from the same place, and so finds the same in the caches.
TEST(Overhead, ChaseIsWithinFivePercentOfAPlainPointerChase) {
  constexpr std::uint64_t places = std::uint64_t{1} << 20;
  const memory m(places * 64);
  link_chase(m.start, places, 64, 64, 1);
  const auto k = make_native_kernels({load_kind::scalar, store_kind::plain, 64, false});
  walk way{.base = m.start, .distance = 64, .places = places, .bytes = 64};
  const void* volatile plain = m.start;
  const auto harness = [&] { k->chase(way, places); };
  const auto by_hand = [&] {
    const void* place = plain;
    for (std::uint64_t n = 0; n < places; ++n) place = *static_cast<const void* const volatile*>(place);
    plain = place;
  };
  expect_at_most(1.05, harness, by_hand, ratio);
  // A harness that is faster has left something out.
  expect_at_most(1.05, harness, by_hand, inverse_ratio);
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
  expect_at_most(
      1.05, [&] { k->load(way, places); }, [&] { load_by_hand(m); }, ratio);
}

}  // namespace
}  // namespace pmlab::microbench
