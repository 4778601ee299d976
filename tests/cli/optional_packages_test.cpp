// Messages about packages that a build may be without.
#include "bench/support/optional_packages.hpp"
#include "support/message_of.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace pmlab {
namespace {

using bench::optional_package;
using testing::HasSubstr;

const std::vector<optional_package> invented = {
    {"ThisLib", "libthis-dev", "index this_hash", {"this_hash"}, {}, "", true},
    {"ThatDB", "libthat-dev", "stores thatdb, thatdb_meta", {}, {"thatdb", "thatdb_meta"}, "", false},
    {"a shell", "dash", "shell", {}, {}, "sh", false},
    {"nothing", "no-such-package", "figures of nothing", {}, {}, "no-such-program", false},
};

TEST(optional_packages, say_whether_they_are_there) {
  std::vector<std::string> states;
  for (const optional_package& p : invented) states.push_back(p.state());
  EXPECT_EQ(states[0], "ThisLib: built in");
  EXPECT_EQ(states[1],
            "ThatDB: absent when pmlab was built; left out: stores thatdb, thatdb_meta; install package libthat-dev, "
            "and build "
            "pmlab again");
  EXPECT_THAT(states[2], testing::MatchesRegex("a shell: /.*/sh"));
  EXPECT_EQ(states[3], "nothing: not on PATH; left out: figures of nothing; install package no-such-package");
}

TEST(optional_packages, what_is_left_out_is_refused_with_the_package) {
  for (const char* const name : {"thatdb", "thatdb_meta"}) {
    const std::string said = tests::message_of([&] { bench::refuse_left_out(name, invented); });
    EXPECT_THAT(said, HasSubstr(std::string("there is no ") + name + " here: this program was built without ThatDB"));
    EXPECT_THAT(said, HasSubstr("install package libthat-dev, and build pmlab again"));
  }
  for (const char* const name : {"this_hash", "that", "cceh", ""})
    EXPECT_NO_THROW(bench::refuse_left_out(name, invented)) << name;
}

TEST(optional_packages, what_is_left_out_is_listed) {
  const nlohmann::ordered_json all = bench::left_out_to_json(invented);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["title"], "ThatDB");
  EXPECT_EQ(all[0]["stores"], nlohmann::ordered_json({"thatdb", "thatdb_meta"}));
  EXPECT_EQ(all[0]["indexes"], nlohmann::ordered_json::array());
  EXPECT_EQ(all[1]["package"], "no-such-package");
}

}  // namespace
}  // namespace pmlab
