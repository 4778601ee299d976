// Orders of places: random is a permutation and no stride, chains are one cycle.
#include "microbench/memory/places.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::microbench {
namespace {

bench_case with_pattern(pattern_kind pattern) {
  bench_case c;
  c.pattern = pattern;
  return c;
}

std::vector<std::uint32_t> places_of(std::size_t entries, std::uint64_t places, const bench_case& c,
                                     std::uint64_t part = 0) {
  std::vector<std::uint32_t> table(entries);
  fill_places(table, places, c, 1, part);
  return table;
}

TEST(Places, RandomVisitsEveryPlaceOnce) {
  for (const std::uint64_t places : {1U, 2U, 3U, 64U, 1000U, 4097U}) {
    std::vector<std::uint32_t> table = places_of(places, places, with_pattern(pattern_kind::random));
    std::sort(table.begin(), table.end());
    for (std::uint32_t i = 0; i < places; ++i) ASSERT_EQ(table[i], i) << places;
  }
}

// The defect of tools that step by a constant and call it random: a prefetcher, or a row that is open, sees it.
TEST(Places, RandomIsNoStride) {
  const std::vector<std::uint32_t> table = places_of(4096, 4096, with_pattern(pattern_kind::random));
  std::map<std::int64_t, int> steps;
  for (std::size_t i = 1; i < table.size(); ++i) ++steps[std::int64_t{table[i]} - std::int64_t{table[i - 1]}];
  const auto most =
      std::max_element(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  EXPECT_LE(most->second, 10) << "a step of " << most->first << " comes up again and again";
}

TEST(Places, PartsOfALongRandomOrderHaveNothingInCommon) {
  constexpr std::uint64_t places = 10'000;
  std::set<std::uint32_t> seen;
  for (std::uint64_t part = 0; part < 10; ++part)
    for (const std::uint32_t place : places_of(1000, places, with_pattern(pattern_kind::random), part)) {
      EXPECT_LT(place, places);
      EXPECT_TRUE(seen.insert(place).second) << place << " in part " << part;
    }
  EXPECT_EQ(seen.size(), places);
}

TEST(Places, HalvesAreEveryOtherPlaceAndThenTheRest) {
  EXPECT_EQ(places_of(7, 7, with_pattern(pattern_kind::halves)), (std::vector<std::uint32_t>{0, 2, 4, 6, 1, 3, 5}));
}

TEST(Places, HotStaysInItsLines) {
  bench_case c = with_pattern(pattern_kind::hot);
  const std::vector<std::uint32_t> table = places_of(1000, 4, c);
  EXPECT_EQ(std::set<std::uint32_t>(table.begin(), table.end()).size(), 4U);
}

TEST(Places, ZipfianHasAFavourite) {
  bench_case c = with_pattern(pattern_kind::zipfian);
  c.theta = 0.99;
  std::map<std::uint32_t, int> counts;
  for (const std::uint32_t place : places_of(100'000, 1000, c)) ++counts[place];
  int most = 0;
  for (const auto& [place, count] : counts) most = std::max(most, count);
  // 1 / zeta(1000, 0.99) is 13.0 %.
  EXPECT_NEAR(most, 13'000, 1'000);
}

TEST(Chase, IsOneCycleThroughAllPlaces) {
  constexpr std::uint64_t distance = 256;
  for (const std::uint64_t places : {1U, 2U, 5U, 1024U}) {
    std::vector<std::byte> memory(places * distance, std::byte{0xff});
    link_chase(memory.data(), places, distance, 128, 7);
    std::set<const std::byte*> seen;
    const std::byte* place = memory.data();
    for (std::uint64_t i = 0; i < places; ++i) {
      ASSERT_TRUE(seen.insert(place).second) << "back after " << i << " of " << places;
      ASSERT_EQ((place - memory.data()) % static_cast<std::ptrdiff_t>(distance), 0);
      std::uint64_t second_line;
      std::memcpy(&second_line, place + 64, sizeof second_line);
      ASSERT_EQ(second_line, 0U);
      std::uintptr_t next;
      std::memcpy(&next, place, sizeof next);
      place = reinterpret_cast<const std::byte*>(next);
    }
    EXPECT_EQ(place, memory.data());
  }
}

}  // namespace
}  // namespace pmlab::microbench
