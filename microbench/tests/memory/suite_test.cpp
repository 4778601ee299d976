// Suites: matrices in the order of the file, and errors that name file, line, key and remedy.
#include "microbench/memory/suite.hpp"
#include <pmlab/base/error.hpp>

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::microbench {
namespace {

suite parse(const std::string& text, const suite_options& options = {}) {
  return parse_suite(text, "mine.toml", options);
}

std::string error_of(const std::string& text) {
  try {
    static_cast<void>(parse(text));
  } catch (const error& e) {
    return e.what();
  }
  return "no error";
}

void expect_error(const std::string& text, const std::vector<std::string>& parts) {
  const std::string what = error_of(text);
  for (const std::string& part : parts) EXPECT_NE(what.find(part), std::string::npos) << what << "\nlacks " << part;
}

TEST(Suite, ListsMakeAMatrixWhoseLastListIsFastest) {
  const suite s = parse(R"(
title = "t"
[defaults]
working_set_bytes = "1M"
[[case]]
name = "a"
claims = ["M1"]
operation = "load"
threads = [1, 2]
access_bytes = [64, "4K"]
published = [1, 2, nan, 4]
published_unit = "GiB/s"
)");
  ASSERT_EQ(s.cases.size(), 4U);
  EXPECT_EQ(s.cases[1].name, "a/threads=1/access_bytes=4K");
  EXPECT_EQ(s.cases[1].threads, 1U);
  EXPECT_EQ(s.cases[1].access_bytes, 4096U);
  EXPECT_EQ(s.cases[1].working_set_bytes, std::uint64_t{1} << 20);
  EXPECT_EQ(s.cases[1].published, 2);
  EXPECT_FALSE(s.cases[2].published);
  EXPECT_EQ(s.cases[2].name, "a/threads=2/access_bytes=64");
  EXPECT_EQ(s.cases[3].claims, std::vector<std::string>{"M1"});
}

TEST(Suite, ThreadsOfTheCommandLineReplaceItsOwn) {
  const suite s = parse(
      "[[case]]\nname = \"a\"\nthreads = [1, 2, 4]\n[[case]]\nname = \"m\"\noperation = \"mixed\"\n"
      "readers = 3\nwriters = 1\n",
      {.threads = {5, 6}});
  ASSERT_EQ(s.cases.size(), 3U);
  EXPECT_EQ(s.cases[0].threads, 5U);
  EXPECT_EQ(s.cases[1].name, "a/threads=6");
  EXPECT_EQ(s.cases[2].threads, 4U);
}

TEST(Suite, PatternsAndFences) {
  const suite s = parse(R"([[case]]
name = "a"
operation = "store"
pattern = ["strided:4K", "zipfian:0.5", "hot:3"]
fence = ["never", "each", 256]
)");
  EXPECT_EQ(s.cases[0].stride_bytes, 4096U);
  EXPECT_EQ(s.cases[3].theta, 0.5);
  EXPECT_EQ(s.cases[8].hot_lines, 3U);
  EXPECT_EQ(s.cases[6].fence_bytes, fence_never);
  EXPECT_EQ(s.cases[7].fence_bytes, fence_each_access);
  EXPECT_EQ(s.cases[8].fence_bytes, 256U);
}

TEST(Suite, BadFilesAreRefusedWithPlaceAndRemedy) {
  const std::string head = "[[case]]\nname = \"a\"\n";
  expect_error("title = ", {"mine.toml:1", "not TOML"});
  expect_error("", {"mine.toml", "no [[case]]"});
  expect_error("[[cases]]\nname = \"a\"\n", {"'cases'", "did you mean 'case'"});
  expect_error("[[case]]\nabout = \"x\"\n", {"name"});
  expect_error("[[case]]\nname = \"a/b\"\n", {"slash"});
  expect_error(head + "acess_bytes = 64\n", {"mine.toml:3", "'acess_bytes'", "did you mean 'access_bytes'"});
  expect_error(head + "operation = \"laod\"\n", {"mine.toml:3", "'operation'", "'laod'", "did you mean 'load'"});
  expect_error(head + "store = \"clbw\"\n", {"'store'", "did you mean 'clwb'"});
  expect_error(head + "pattern = \"randon\"\n", {"'pattern'", "did you mean 'random'"});
  expect_error(head + "pattern = \"strided\"\n", {"'pattern'", "strided:NUMBER"});
  expect_error(head + "pattern = \"random:4\"\n", {"'pattern'", "leave the colon out"});
  expect_error(head + "access_bytes = 100\n", {"'access_bytes'", "is 100", "multiple of 64"});
  expect_error(head + "access_bytes = \"many\"\n", {"'access_bytes'", "not a number"});
  expect_error(head + "access_bytes = [64, \"x\"]\n", {"mine.toml:3", "'access_bytes'"});
  expect_error(head + "access_bytes = []\n", {"'access_bytes'", "empty list"});
  expect_error(head + "access_bytes = 64\nworking_set_bytes = 32\n", {"'working_set_bytes'", "at least 64"});
  expect_error(head + "threads = 0\n", {"'threads'", "out of range: 0"});
  expect_error(head + "threads = \"two\"\n", {"'threads'", "whole number"});
  expect_error(head + "threads = 1.5\n", {"'threads'", "whole number"});
  expect_error(head + "dependent = 1\n", {"'dependent'", "true or false"});
  expect_error(head + "operation = \"mixed\"\n", {"'operation'", "readers and writers"});
  expect_error(head + "readers = 2\n", {"'readers'", "mixed"});
  expect_error(head + "operation = \"store\"\npattern = \"chase\"\n", {"'pattern'", "chase"});
  expect_error(head + "operation = \"store\"\nfence = 100\n", {"'fence'", "is 100"});
  expect_error(head + "operation = \"store\"\nstore = \"movdir64b\"\naccess_bytes = 8\n", {"'store'", "whole lines"});
  expect_error(head + "operation = \"read_after_persist\"\nmeasure = \"latency\"\n", {"'steps'", "missing"});
  expect_error(head + "operation = \"read_after_persist\"\nsteps = \"persist load\"\n", {"'measure'", "latency"});
  expect_error(head + "cache = \"cold\"\n", {"'cache'", "measure = \"latency\""});
  expect_error(head + "medium = \"profile:app\"\n", {"app", "aep"});
  expect_error(head + "medium = \"disk\"\n", {"'medium'", "profile:NAME"});
  expect_error(head + "published = 3\n", {"'published'", "published_unit"});
  expect_error(head + "threads = [1, 2]\npublished = [3]\npublished_unit = \"ns\"\n", {"1 figures for 2 cases"});
  expect_error(head + head, {"two cases are called a"});
}

TEST(Suite, ThoseThatComeWithPmlabAreWhole) {
  std::set<std::string> claims;
  ASSERT_EQ(suite_names(), (std::vector<std::string_view>{"calibrate", "cxl", "full", "paper", "quick"}));
  for (const std::string_view name : suite_names()) {
    const suite s = load_suite(name);
    EXPECT_FALSE(s.cases.empty());
    if (name == "paper")
      for (const bench_case& c : s.cases) claims.insert(c.claims.begin(), c.claims.end());
  }
  for (int i = 1; i <= 26; ++i) {
    std::string claim = "M";
    claim += std::to_string(i);
    EXPECT_TRUE(claims.contains(claim)) << claim;
  }
}

TEST(Suite, UnknownNamesAndFiltersAreRefused) {
  EXPECT_THROW(static_cast<void>(load_suite("papre")), error);
  EXPECT_THROW(static_cast<void>(load_suite("no/such.toml")), error);
  suite s = load_suite("quick");
  EXPECT_THROW(filter_cases(s, "("), error);
  filter_cases(s, "^chase/");
  EXPECT_EQ(s.cases.size(), 3U);
  EXPECT_THROW(filter_cases(s, "nothing"), error);
}

}  // namespace
}  // namespace pmlab::microbench
