// Plans: which calls an experiment stands for, and that those which come with pmlab feed every claim.
#include "experiments/plan.hpp"
#include "tools/support/shell_form.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/spec.hpp>
#include "claims/indexes.hpp"
#include "experiments/experiment.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace pmlab::experiments {
namespace {

const known_options& options() {
  static const known_options all = {{"bench",
                                     {"index", "medium", "records", "operations", "threads", "workload", "phases",
                                      "distribution", "verify", "repeat", "batch", "trace", "huge-pages"}},
                                    {"microbench", {"suite", "medium"}}};
  return all;
}

experiment read(const std::string& text) {
  return parse_experiment("title = \"T\"\nabout = \"A\"\nshows = \"x\"\n" + text, "mine.toml", options());
}

TEST(Plan, CrossesTheMatrixAndTakesTheScale) {
  const experiment e = read(
      "[arguments]\nindex = \"a\"\nrecords = \"1M\"\n"
      "[matrix]\nmedium = [\"simulated:aep\", \"pmem:{pool}\"]\ndistribution = [\"uniform\", \"zipfian:0.99\"]\n"
      "[scale.smoke]\nrecords = \"1k\"\ndistribution = [\"uniform\"]\n");
  const std::vector<cell> smoke = plan(e, "smoke");
  ASSERT_EQ(smoke.size(), 2U);
  EXPECT_EQ(smoke[0].name, "mine/simulated-aep_uniform");
  EXPECT_EQ(shell_form(smoke[0].words),
            "pmlab bench --medium simulated:aep --distribution uniform --index a --records 1k --verify");
  EXPECT_EQ(smoke[1].name, "mine/pmem-pool_uniform");
  const std::vector<cell> quick = plan(e, "quick");
  ASSERT_EQ(quick.size(), 4U);
  EXPECT_EQ(quick[3].values.at(1).second, "zipfian:0.99");
  EXPECT_GT(quick[0].weight, smoke[0].weight);
}

TEST(Plan, AnswersAreCheckedUnlessTheFileSaysNo) {
  EXPECT_EQ(shell_form(plan(read("[arguments]\nindex = \"a\"\n"), "quick")[0].words), "pmlab bench --index a --verify");
  EXPECT_EQ(shell_form(plan(read("[arguments]\nindex = \"a\"\nverify = false\n"), "quick")[0].words),
            "pmlab bench --index a");
  EXPECT_EQ(shell_form(plan(read("kind = \"microbench\"\n[arguments]\nsuite = \"a b\"\n"), "quick")[0].words),
            "pmlab microbench --suite 'a b'");
}

TEST(Plan, CellsOfOneNameAreRefused) {
  EXPECT_THROW(
      static_cast<void>(plan(read("[arguments]\nindex = \"a\"\n[matrix]\nmedium = [\"a:b\", \"a-b\"]\n"), "quick")),
      error);
}

TEST(Experiments, AllThatComeWithPmlabHaveAPlanAtEveryScale) {
  ASSERT_GT(experiment_names().size(), 15U);
  for (const std::string_view name : experiment_names()) {
    const experiment e = load_experiment(name, options());
    for (const std::string_view scale : scale_names()) EXPECT_FALSE(plan(e, scale).empty()) << name;
    EXPECT_TRUE(e.kind == "microbench" || name == "answers" || name == "trace" || !e.charts.empty()) << name;
  }
}

std::vector<std::string> values_of(const cell& c, const std::string& option) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i + 1 < c.words.size(); ++i)
    if (c.words[i] == option)
      for (std::string& one : split_list(c.words[i + 1])) all.push_back(std::move(one));
  return all;
}

// The cases that results of this cell become (claims/result_set.hpp).
void add_cases(const cell& c, std::set<std::string>& cases) {
  std::string prefix = c.experiment;
  std::map<std::string, std::string> sorted(c.values.begin(), c.values.end());
  for (const auto& [key, value] : sorted)
    if (key != "medium" && key != "index" && key != "threads") prefix += fmt::format("/{}={}", key, value);
  std::vector<std::string> phases = values_of(c, "--phases");
  for (std::string& w : values_of(c, "--workload")) phases.push_back(std::move(w));
  std::vector<std::string> threads = values_of(c, "--threads");
  if (threads.empty()) threads.emplace_back("1");
  threads.emplace_back("most");
  for (const std::string& index : values_of(c, "--index"))
    for (const std::string& phase : phases)
      for (const std::string& count : threads)
        cases.insert(fmt::format("{}/index={}/threads={}/phase={}", prefix, index, count, phase));
}

// The claim is fed by one medium alone, or by several: then each may be whole.
TEST(Experiments, FeedEveryClaimAboutIndexesOnOneMediumAtLeast) {
  for (const std::string_view scale : {"quick", "full"}) {
    std::map<std::string, std::set<std::string>> by_medium;
    std::map<std::string, std::set<std::string>> fed_by;
    for (const std::string_view name : experiment_names()) {
      const experiment e = load_experiment(name, options());
      for (const std::string& id : e.claims) fed_by[id].insert(e.name);
      if (e.kind != "bench") continue;
      for (const cell& c : plan(e, scale)) add_cases(c, by_medium[values_of(c, "--medium").at(0)]);
    }
    for (const claims::claim& c : claims::index_claims()) {
      const std::vector<std::string> needed = claims::cases_of(c);
      const bool whole = std::any_of(by_medium.begin(), by_medium.end(), [&](const auto& medium) {
        return std::all_of(needed.begin(), needed.end(),
                           [&](const std::string& name) { return medium.second.contains(name); });
      });
      EXPECT_TRUE(whole) << c.id << " at scale " << scale;
      for (const std::string& name : needed)
        EXPECT_TRUE(fed_by[c.id].contains(name.substr(0, name.find('/'))))
            << name << " does not say that it feeds " << c.id;
    }
    for (int m = 1; m <= 26; ++m) EXPECT_TRUE(fed_by.contains(fmt::format("M{}", m)));
  }
}

}  // namespace
}  // namespace pmlab::experiments
