// The choices at a crash point.
#include "checker/verify/choices.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace pmlab::verify {
namespace {

using choice = std::vector<std::uint32_t>;

std::multiset<choice> choices(std::size_t places, std::size_t lines, std::size_t fixed, std::size_t states,
                              std::uint32_t most = 2) {
  std::multiset<choice> all;
  choice room;
  splitmix64 random(3);
  for_each_choice(
      room, places, lines, fixed, states, random, [=](std::size_t) { return most; },
      [&](const choice& c) { all.insert(c); });
  return all;
}

TEST(choices, are_all_where_they_are_few) {
  const std::multiset<choice> all = choices(3, 1, nothing_fixed, 27);
  EXPECT_EQ(all.size(), 27u);
  EXPECT_EQ(std::set<choice>(all.begin(), all.end()).size(), 27u);
}

TEST(choices, leave_the_fixed_place_as_it_is) {
  const std::multiset<choice> all = choices(3, 1, 1, 9);
  EXPECT_EQ(all.size(), 9u);
  for (const choice& c : all) EXPECT_EQ(c[1], 2u);
}

TEST(choices, of_many_places_have_each_kind_ahead_of_the_other) {
  const std::multiset<choice> all = choices(6, 2, nothing_fixed, 6);
  EXPECT_EQ(all.size(), 6u);
  EXPECT_TRUE(all.contains(choice{0, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(all.contains(choice{2, 2, 2, 2, 2, 2}));
  EXPECT_TRUE(all.contains(choice{2, 2, 0, 0, 0, 0}));
  EXPECT_TRUE(all.contains(choice{0, 0, 2, 2, 2, 2}));
}

TEST(choices, have_no_further_state_where_nothing_is_uncertain) {
  EXPECT_EQ(choices(0, 0, nothing_fixed, 64).size(), 1u);
}

}  // namespace
}  // namespace pmlab::verify
