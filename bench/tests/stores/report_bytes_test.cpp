// A report that goes from one process to another is the same there.
#include "bench/stores/report_bytes.hpp"

#include <gtest/gtest.h>

namespace pmlab::store_bench {
namespace {

TEST(ReportBytes, AReportOfVolumesComesBack) {
  run_options options;
  options.cases.resize(2);
  options.cases[1].size = 16384;
  outcome<run_report> sent;
  case_result r;
  r.case_number = 1;
  r.of = {"chunk_store", "pmem", "simulated:aep", "cceh", "remap", 16};
  r.operations = 7;
  r.verified = 5;
  r.time_ns = 12.5;
  r.latency = latency_figures{.mean = 3, .p99_9 = 9};
  r.main[0].bytes_written = 4096;
  r.flash_per_written = 2.5;
  r.medium.emplace().fences = 3;
  r.statistics = {{"merges", 2}, {"first", 1}};
  r.space.free_bytes = 77;
  sent.report.results = {r};
  sent.report.at_end = {{"chunk_store", 512, 1}};
  sent.report.first_wrong = {"torn"};
  sent.report.remarks = {"late"};
  sent.report.failure = "no space";
  sent.report.seconds = 1.25;
  sent.scale = "1:800";
  sent.way = "io_uring";

  const outcome<run_report> got = outcome_of(bytes_of(sent), options);
  ASSERT_EQ(got.report.results.size(), 1U);
  const case_result& found = got.report.results.front();
  EXPECT_EQ(found.what.size, 16384U);
  EXPECT_EQ(found.of.store, "chunk_store");
  EXPECT_EQ(found.of.ring, 16U);
  EXPECT_EQ(found.operations, 7U);
  EXPECT_EQ(found.verified, 5U);
  EXPECT_EQ(found.time_ns, 12.5);
  ASSERT_TRUE(found.latency);
  EXPECT_EQ(found.latency->p99_9, 9U);
  EXPECT_FALSE(found.read_latency);
  EXPECT_EQ(found.main, r.main);
  EXPECT_EQ(found.flash_per_written, 2.5);
  EXPECT_EQ(found.medium->fences, 3U);
  EXPECT_EQ(found.statistics, r.statistics);
  EXPECT_EQ(found.space.free_bytes, 77U);
  EXPECT_EQ(got.report.at_end.front().verified, 512U);
  EXPECT_EQ(got.report.first_wrong, sent.report.first_wrong);
  EXPECT_EQ(got.report.remarks, sent.report.remarks);
  EXPECT_EQ(got.report.failure, "no space");
  EXPECT_EQ(got.report.seconds, 1.25);
  EXPECT_EQ(got.scale + got.way, "1:800io_uring");
}

TEST(ReportBytes, AReportOfPairsComesBack) {
  pair_run_options options;
  options.cases.resize(3);
  options.cases[2].value_bytes = 128;
  outcome<pair_report> sent;
  pair_result r;
  r.case_number = 2;
  r.of = {"kv_ssd", "dram", "emulated:9300", "capacity_only", "pmem"};
  r.after = settling{.time_ns = 4, .written_bytes = 5};
  r.host_bytes = 6;
  r.staging.emplace()[1].reads = 8;
  r.space.memory_bytes = 9;
  sent.report.results = {r, r};
  const outcome<pair_report> got = outcome_of(bytes_of(sent), options);
  ASSERT_EQ(got.report.results.size(), 2U);
  const pair_result& found = got.report.results.back();
  EXPECT_EQ(found.what.value_bytes, 128U);
  EXPECT_EQ(found.of.memtable, "pmem");
  EXPECT_EQ(found.after->written_bytes, 5U);
  EXPECT_EQ(found.host_bytes, 6U);
  EXPECT_EQ(found.staging, r.staging);
  EXPECT_EQ(found.space.memory_bytes, 9U);
  EXPECT_FALSE(got.report.failure);
}

}  // namespace
}  // namespace pmlab::store_bench
