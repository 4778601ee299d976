// What judges see of results, and what verdicts say of what is not there.
#include "world.hpp"

#include <pmlab/base/error.hpp>
#include "claims/claim.hpp"
#include "claims/drive.hpp"

#include <string>

#include <gtest/gtest.h>

namespace pmlab::claims {
namespace {

using nlohmann::json;

json document_of(const json& cases) { return {{"schema", 1}, {"cases", cases}}; }

json latency(const std::string& name, double ns) {
  return {{"name", name}, {"value", ns}, {"unit", "ns"}, {"skipped", nullptr}};
}

json skipped(const std::string& name) {
  return {{"name", name}, {"value", nullptr}, {"unit", nullptr}, {"skipped", "no such CPU"}};
}

claim faster_than_ten(bool where_counted = false, const std::string& path = "value") {
  return {"X1",
          "It is fast.",
          {{"time", unit::ns, measured("a", path), at_most(10), where_counted},
           {"other time", unit::ns, measured("b"), at_most(10)}}};
}

judgement judged(const claim& c, const json& cases) { return judge(c, evidence(document_of(cases), "test")); }

TEST(Evidence, TakesOffWhatAnEmulatedDeviceWasSlowedDownBy) {
  json slow = latency("a", 600);
  slow["scale"] = 2.0;
  slow["reads"] = {{"gib_per_s", 3.0}, {"latency_ns", {{"mean", 500.0}}}};
  slow["media"] = {{"read_amplification", 4.0}};
  const evidence e(document_of(json::array({slow})), "test");
  EXPECT_EQ(e.figure("a", "value"), 300);
  EXPECT_EQ(e.figure("a", "reads/gib_per_s"), 6);
  EXPECT_EQ(e.figure("a", "reads/latency_ns/mean"), 250);
  EXPECT_EQ(e.figure("a", "media/read_amplification"), 4);
  EXPECT_THROW(static_cast<void>(e.figure("a", "writes/gib_per_s")), uncounted);
  EXPECT_THROW(static_cast<void>(e.figure("b", "value")), missing);
}

TEST(Evidence, RefusesWhatIsNoResult) {
  const auto refused = [](const json& document) {
    EXPECT_THROW(evidence(document, "f.json"), error) << document.dump();
  };
  refused(json::array());
  refused({{"schema", 2}, {"cases", json::array()}});
  refused({{"schema", 1}});
  refused(document_of({1}));
  refused(document_of({{{"value", 1}}}));
  refused(document_of({{{"name", "a"}, {"value", nullptr}, {"unit", "ns"}}}));
}

TEST(Verdict, FailureDecidesWhateverElseIsSkipped) {
  EXPECT_EQ(judged(faster_than_ten(), {latency("a", 5), latency("b", 5)}).found, verdict::reproduced);
  EXPECT_EQ(judged(faster_than_ten(), {latency("a", 5), latency("b", 15)}).found, verdict::not_reproduced);
  EXPECT_EQ(judged(faster_than_ten(), {skipped("a"), latency("b", 15)}).found, verdict::not_reproduced);
  const judgement j = judged(faster_than_ten(), {skipped("a"), latency("b", 5)});
  EXPECT_EQ(j.found, verdict::not_applicable);
  EXPECT_EQ(j.reason, "no such CPU (a)");
  EXPECT_EQ(judged(faster_than_ten(), json::array({latency("b", 15)})).found, verdict::not_measured);
}

TEST(Verdict, WhatNobodyCountsIsLeftOutOnlyWhereThatIsSaid) {
  const json cases = {latency("a", 5), latency("b", 5)};
  EXPECT_EQ(judged(faster_than_ten(true, "media/x"), cases).found, verdict::reproduced);
  EXPECT_EQ(judged(faster_than_ten(false, "media/x"), cases).found, verdict::not_measured);
}

TEST(Verdict, PublishedFiguresStandBeside) {
  json a = latency("a", 5);
  a["published"] = 12.0;
  a["published_unit"] = "ns";
  const judgement j = judged(faster_than_ten(), {a, latency("b", 5)});
  EXPECT_EQ(j.found, verdict::reproduced) << "they decide nothing";
  EXPECT_EQ(j.findings[0].published, 12.0);
  EXPECT_FALSE(j.findings[1].published);
}

TEST(Quantities, SizesNearTheLowest) {
  const auto largest = [](double small, double middle, double large) {
    const quantity q =
        largest_size_near_lowest({{64, measured("a")}, {256, measured("b")}, {512, measured("c")}}, 1.05);
    const evidence e(document_of({latency("a", small), latency("b", middle), latency("c", large)}), "test");
    return q.of(e, [&e](const std::string& name, std::string_view path) { return e.figure(name, path); });
  };
  EXPECT_EQ(largest(100, 100, 200), 256);
  EXPECT_EQ(largest(100, 110, 200), 64);
  EXPECT_EQ(largest(100, 110, 104), 512);
}

TEST(Drive, FiguresAreThoseOfFio) {
  const json fio = {{"jobs", {{{"write", {{"bw_bytes", 680e6}}}}, {{"read", {{"bw_bytes", 870e6}}}}}}};
  const json cases = drive_cases(fio, "/somewhere");
  EXPECT_EQ(cases[0]["name"], "drive-write");
  EXPECT_NEAR(cases[0]["value"].get<double>(), 0.6333, 1e-3);
  EXPECT_EQ(cases[1]["name"], "drive-read");
  EXPECT_NEAR(cases[1]["value"].get<double>(), 0.8103, 1e-3);
  EXPECT_THROW(static_cast<void>(drive_cases(json::object(), "/somewhere")), error);
}

TEST(Drive, NoFolderIsAReason) {
  const json cases = measure_drive("");
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_NE(cases[0]["skipped"].get<std::string>().find("--ssd FOLDER"), std::string::npos);
  EXPECT_THROW(static_cast<void>(measure_drive("/no/such/folder")), error);
}

}  // namespace
}  // namespace pmlab::claims
