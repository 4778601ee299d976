// Names of what lies in a medium.
#include <pmlab/base/name.hpp>

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace pmlab::tests {
namespace {

std::string said_of(std::string_view name) {
  try {
    check_name(name, 4, "a volume");
  } catch (const error& e) {
    return e.what();
  }
  return "";
}

TEST(Name, has_1_to_the_longest_number_of_characters) {
  EXPECT_EQ(said_of("a"), "");
  EXPECT_EQ(said_of("abcd"), "");
  EXPECT_EQ(said_of("\xff\n"), "");
  EXPECT_EQ(said_of(""), "'' cannot name a volume; use 1 to 4 characters, none of them 0");
  EXPECT_EQ(said_of("abcde"), "'abcde' cannot name a volume; use 1 to 4 characters, none of them 0");
}

// Media pad names with zeros: "a" and "a\0" would be one name, or one that is never found again.
TEST(Name, has_no_0) {
  using namespace std::string_view_literals;
  EXPECT_EQ(said_of("a\0"sv), "'a\\0' cannot name a volume; use 1 to 4 characters, none of them 0");
  EXPECT_EQ(said_of("\0"sv), "'\\0' cannot name a volume; use 1 to 4 characters, none of them 0");
  EXPECT_EQ(said_of("a\0b"sv), "'a\\0b' cannot name a volume; use 1 to 4 characters, none of them 0");
}

}  // namespace
}  // namespace pmlab::tests
