// Files of experiments: what is read, and what is refused with which remedy.
#include "experiments/experiment.hpp"
#include <pmlab/base/error.hpp>

#include <string>

#include <gtest/gtest.h>

namespace pmlab::experiments {
namespace {

const known_options& options() {
  static const known_options all = {
      {"bench", {"index", "medium", "records", "threads", "workload", "verify", "huge-pages"}},
      {"microbench", {"suite", "medium"}}};
  return all;
}

const std::string head = "title = \"T\"\nabout = \"A\"\nshows = \"figure 17\"\n";
const std::string body = "[arguments]\nindex = [\"a\", \"b(c,d)\"]\n";

experiment read(const std::string& text) { return parse_experiment(text, "folder/mine.toml", options()); }

void refused(const std::string& text, const std::string& part) {
  try {
    static_cast<void>(read(text));
    ADD_FAILURE() << "was taken: " << text;
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("; "), std::string::npos) << "no remedy: " << e.what();
  }
}

TEST(Experiment, IsReadAsWritten) {
  const experiment e =
      read(head +
           "claims = [\"I1\"]\n"
           "[arguments]\nindex = [\"a\", \"b\"]\nverify = false\nworkload = [[\"x\"], [\"y\", \"z\"]]\n"
           "[matrix]\nmedium = [\"m\", \"n\"]\nthreads = [1, [2, 4]]\n"
           "[scale.smoke]\nrecords = \"1k\"\nthreads = [8]\n"
           "[[chart]]\nkind = \"bars\"\nx = \"medium\"\ny = \"latency\"\nseries = \"index\"\n");
  EXPECT_EQ(e.name, "mine");
  EXPECT_EQ(e.kind, "bench");
  EXPECT_EQ(e.claims, std::vector<std::string>{"I1"});
  ASSERT_EQ(e.common.arguments.size(), 3U);
  EXPECT_EQ(e.common.arguments[0].values, std::vector<std::string>{"a,b"});
  EXPECT_TRUE(e.common.arguments[1].absent);
  EXPECT_EQ(e.common.arguments[2].values, (std::vector<std::string>{"x", "y,z"}));
  ASSERT_EQ(e.common.matrix.size(), 2U);
  EXPECT_EQ(e.common.matrix[1].values, (std::vector<std::string>{"1", "2,4"}));
  const settings& smoke = e.scales.at("smoke");
  EXPECT_EQ(smoke.arguments.size(), 1U);
  EXPECT_EQ(smoke.matrix.at(0).values, std::vector<std::string>{"8"});
  EXPECT_EQ(e.charts.at(0).y, "latency");
}

TEST(Experiment, MistakesHaveRemedies) {
  refused("title = = 1", "mine.toml:1: not TOML");
  refused("about = \"A\"\nshows = \"x\"\n" + body, "has no title");
  refused(head, "has no [arguments]");
  refused(head + "titel = \"x\"\n" + body, "did you mean 'title'");
  refused(head + "kind = \"bnech\"\n" + body, "did you mean 'bench'");
  refused(head + "[arguments]\nindx = \"a\"\n", "did you mean --index");
  refused(head + body + "[matrix]\nmedium = \"m\"\n", "medium of the matrix is no list");
  refused(head + body + "[matrix]\nindex = [\"m\"]\n", "is in [arguments] and in [matrix]");
  refused(head + body + "[scale.huge]\nrecords = 1\n", "did you mean");
  refused(head + body + "[scale.quick]\nrecrods = 1\n", "did you mean --records");
  refused(head + body + "[[chart]]\nkind = \"pie\"\n", "did you mean");
  refused(head + body + "[[chart]]\nkind = \"bars\"\nx = \"medium\"\ny = \"speed\"\nseries = \"index\"\n",
          "did you mean");
  refused(head + body + "[[chart]]\nkind = \"bars\"\nx = \"distribution\"\ny = \"p99\"\nseries = \"index\"\n",
          "cannot be");
}

TEST(Experiment, UnknownNamesHaveANearestOne) {
  try {
    static_cast<void>(load_experiment("hybird", options()));
    FAIL();
  } catch (const error& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean 'hybrid'"), std::string::npos) << e.what();
  }
  EXPECT_THROW(static_cast<void>(load_experiment("no/such/file.toml", options())), error);
}

}  // namespace
}  // namespace pmlab::experiments
