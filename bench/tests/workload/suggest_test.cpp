#include <pmlab/base/suggest.hpp>

#include <gtest/gtest.h>

#include <array>
#include <string_view>

namespace {

using namespace pmlab;

TEST(suggest, edit_distance_counts_insertions_deletions_and_replacements) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
  EXPECT_EQ(edit_distance("cceh", "cceh"), 0U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("sunday", "saturday"), 3U);
  EXPECT_EQ(edit_distance("ab", "ba"), 2U);
}

TEST(suggest, nearest_name_wins_and_the_first_of_equals) {
  constexpr std::array<std::string_view, 4> known = {"fast_fair", "cceh", "tbb_hash", "std_map"};
  EXPECT_EQ(nearest("fastfair", known), "fast_fair");
  EXPECT_EQ(nearest("cche", known), "cceh");
  EXPECT_EQ(nearest("std-map", known), "std_map");
  constexpr std::array<std::string_view, 2> alike = {"ab", "ac"};
  EXPECT_EQ(nearest("ax", alike), "ab");
}

TEST(suggest, nothing_known_gives_nothing) { EXPECT_EQ(nearest("x", {}), ""); }

}  // namespace
