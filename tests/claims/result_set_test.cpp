// What `pmlab run` left in a folder, as evidence, and the verdicts on it.
#include "support/temporary_folder.hpp"

#include <pmlab/base/error.hpp>
#include "claims/evidence.hpp"
#include "claims/indexes.hpp"
#include "claims/result_set.hpp"
#include "claims/verdicts.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

namespace pmlab::claims {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

json result(const std::string& index, unsigned threads, double throughput, unsigned repeat = 1) {
  return {{"index", index},
          {"threads", threads},
          {"phase", "read"},
          {"repeat", repeat},
          {"medium", "dram"},
          {"throughput_ops_per_s", throughput},
          {"latency_ns", {{"mean", 1e9 / throughput}}},
          {"cache", nullptr}};
}

json document_of(const json& results, const std::string& medium) {
  return {{"schema", 1}, {"machine", {{"medium", medium}}}, {"results", results}, {"skipped", json::array()}};
}

class ResultSet : public ::testing::Test {
 protected:
  void add(const std::string& name, const json& values, const json& document, int status = 0) {
    const fs::path file = folder() / "raw" / (name + ".json");
    fs::create_directories(file.parent_path());
    std::ofstream(file) << document;
    manifest_["runs"].push_back(
        {{"name", name}, {"experiment", name.substr(0, name.find('/'))}, {"values", values}, {"status", status}});
    std::ofstream(folder() / "manifest.json") << manifest_;
  }
  [[nodiscard]] fs::path folder() const { return folder_.file(""); }

 private:
  tests::temporary_folder folder_;
  json manifest_ = {{"schema", 1}, {"runs", json::array()}};
};

TEST(CasesOfBench, AreMediansAndKnowTheMostThreads) {
  const json cases = cases_of_bench(
      document_of({result("a", 1, 10, 1), result("a", 1, 40, 2), result("a", 1, 20, 3), result("a", 4, 70)}, "dram"),
      "e");
  const evidence e({{"schema", 1}, {"cases", cases}}, "test");
  EXPECT_EQ(e.figure("e/index=a/threads=1/phase=read", "value"), 20);
  EXPECT_EQ(e.figure("e/index=a/threads=1/phase=read", "latency_ns/mean"), 5e7);
  EXPECT_EQ(e.figure("e/index=a/threads=4/phase=read", "value"), 70);
  EXPECT_EQ(e.figure("e/index=a/threads=most/phase=read", "value"), 70);
  EXPECT_THROW(static_cast<void>(e.figure("e/index=a/threads=4/phase=read", "cache/hit_ratio")), uncounted);
}

TEST_F(ResultSet, IsOneEvidenceForEachMedium) {
  add("x/a", {{"medium", "simulated:aep"}, {"distribution", "uniform"}},
      document_of(json::array({result("i", 1, 5)}), "simulated:aep"));
  add("x/b", {{"medium", "pmem:{pool}"}, {"distribution", "uniform"}},
      document_of(json::array({result("i", 1, 7)}), "pmem:/somewhere"));
  add("x/c", {{"medium", "simulated:aep"}}, document_of(json::array({result("i", 1, 9)}), "simulated:aep"), 1);
  const auto all = read_result_set(folder());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].medium, "simulated:aep");
  EXPECT_EQ(all[1].medium, "pmem");
  const evidence first(all[0].document, "first");
  EXPECT_EQ(first.figure("x/distribution=uniform/index=i/threads=1/phase=read", "value"), 5);
  EXPECT_FALSE(first.has("x/index=i/threads=1/phase=read")) << "of a cell that failed";
}

TEST_F(ResultSet, WhatIsNoneIsRefused) {
  EXPECT_THROW(static_cast<void>(read_result_set(folder())), error);
  add("x/a", json::object(), {{"schema", 1}});
  EXPECT_THROW(static_cast<void>(read_result_set(folder())), error);
}

json hybrids(double plus) {
  return {result("hybrid_index", 1, 4), result("hybrid_index_plus", 1, plus), result("hybrid_index", 16, 40),
          result("hybrid_index_plus", 16, 20 * plus)};
}

TEST_F(ResultSet, TheSameClaimIsJudgedOnEachMedium) {
  add("hybrid/aep", {{"medium", "simulated:aep"}}, document_of(hybrids(6), "simulated:aep"));
  add("hybrid/classic", {{"medium", "simulated:classic"}}, document_of(hybrids(3), "simulated:classic"));
  std::vector<claim> chosen = hybrid_claims();
  chosen.resize(2);
  const result_set_verdicts found = judge_result_set(folder(), chosen, "pmlab run");
  EXPECT_EQ(found.tables.size(), 2U);
  EXPECT_EQ(found.unmeasured, std::vector<std::string>{"I2"}) << "once, though neither medium has it";
  const auto verdict_on = [&](const std::string& medium) {
    return read_json(folder() / "claims" / (medium + ".json"))["claims"][0]["verdict"].get<std::string>();
  };
  EXPECT_EQ(verdict_on("simulated-aep"), "reproduced");
  EXPECT_EQ(verdict_on("simulated-classic"), "not reproduced");
}

}  // namespace
}  // namespace pmlab::claims
