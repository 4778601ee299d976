// The order in which things are measured, and what is made of the figures.
#include <pmlab/base/error.hpp>
#include "bench/engine/summary.hpp"
#include "bench/engine/table.hpp"
#include "bench/support/time_left.hpp"

#include "run_small.hpp"
#include "small_map.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::tests {
namespace {

using bench::phase_result;

TEST(engine, measures_the_indexes_in_turns_and_rotates) {
  bench::bench_options o = small_run(bench::parse_phases("read,update"));
  o.repeats = 3;
  const bench::bench_report report = run(o, {describe("a"), describe("b"), describe("c")});
  std::string order;
  for (const phase_result& r : report.results) order += r.phase.substr(0, 1) + r.index + " ";
  EXPECT_EQ(order,
            "la lb lc "
            "ra rb rc ua ub uc "
            "rb rc ra ub uc ua "
            "rc ra rb uc ua ub ");
}

TEST(engine, loads_and_measures_again_for_every_number_of_threads) {
  bench::bench_options o = small_run(bench::parse_phases("read"));
  o.threads = {1, 2};
  const bench::bench_report report = run(o, {describe("a")});
  ASSERT_EQ(report.results.size(), 4U);
  for (const phase_result& r : report.results) {
    EXPECT_EQ(r.operations, r.phase == "load" ? o.records : o.operations);
    EXPECT_EQ(r.entries, o.records);
    EXPECT_GT(r.throughput, 0);
    EXPECT_GE(r.latency.samples, r.operations / 16);
    EXPECT_LE(r.latency.p50, r.latency.p99);
    EXPECT_LE(r.latency.p99, r.latency.max);
  }
  EXPECT_EQ(report.results[0].threads, 1U);
  EXPECT_EQ(report.results[2].threads, 2U);
}

TEST(engine, erase_takes_away_what_insert_added) {
  bench::bench_options o = small_run(bench::parse_phases("insert,erase"));
  o.repeats = 2;
  o.verify = true;
  const bench::bench_report report = run(o, {describe("a")});
  for (const phase_result& r : report.results)
    EXPECT_EQ(r.entries, r.phase == "insert" ? o.records + o.operations : o.records) << r.phase;
  EXPECT_EQ(report.wrong_answers(), 0U);
}

TEST(engine, erase_alone_inserts_first) {
  const bench::bench_report report = run(small_run(bench::parse_phases("erase")), {describe("a")});
  ASSERT_EQ(report.results.size(), 2U);
  EXPECT_EQ(report.results.back().operations, 20'000U);
  EXPECT_EQ(report.results.back().entries, 5'000U);
}

TEST(engine, leaves_out_what_an_index_lacks_and_says_why) {
  bench::index_description d = describe("a");
  d.refusal = [](workload::operation_kind kind, unsigned) {
    return std::string(kind == workload::operation_kind::scan ? "it has no order" : "");
  };
  std::vector<bench::phase> phases = bench::parse_phases("read,scan,reopen");
  phases.push_back(bench::parse_workload("ycsb-e"));
  const bench::bench_report report = run(small_run(phases), {d});
  ASSERT_EQ(report.skipped.size(), 3U);
  EXPECT_EQ(report.skipped[0].phase, "scan");
  EXPECT_EQ(report.skipped[0].reason, "it has no order");
  EXPECT_EQ(report.skipped[1].phase, "reopen");
  EXPECT_EQ(report.skipped[2].phase, "ycsb-e");
  EXPECT_EQ(report.results.size(), 2U);
}

TEST(engine, stops_by_time) {
  bench::bench_options o = small_run(bench::parse_phases("read"));
  o.seconds = 0.1;
  const bench::bench_report report = run(o, {describe("a")});
  EXPECT_GE(report.results.back().seconds, 0.1);
  EXPECT_LT(report.results.back().seconds, 2);
}

// Says `full` after some entries.
class bounded_map : public small_map<flaw::none> {
 public:
  using small_map::small_map;
  indexes::outcome insert(indexes::key_type key, indexes::value_type value) {
    return ++inserted_ > 3'000 ? indexes::outcome::full : small_map::insert(key, value);
  }

 private:
  std::uint64_t inserted_ = 0;
};

TEST(engine, a_full_medium_ends_the_run_and_says_how_far_it_came) {
  bench::index_description d = describe("a");
  d.make = [](const bench::subject_setup& setup) -> std::unique_ptr<bench::subject> {
    return std::make_unique<bench::peers::peer<bounded_map>>(setup);
  };
  const bench::bench_report report = run(small_run({}), {describe("roomy"), d});
  ASSERT_TRUE(report.failure.has_value());
  EXPECT_NE(report.failure->find("3000 of 5000 records were loaded"), std::string::npos) << *report.failure;
  ASSERT_EQ(report.results.size(), 1U) << "what was measured before stands";
  EXPECT_EQ(report.results[0].index, "roomy");
}

TEST(engine, refuses_an_index_named_twice_and_an_unknown_baseline) {
  EXPECT_THROW(run(small_run({}), {describe("a"), describe("a")}), error);
  bench::bench_options o = small_run({});
  o.baseline = "b";
  EXPECT_THROW(run(o, {describe("a")}), error);
}

TEST(time_left, is_not_told_before_something_was_seen) {
  bench::time_left left;
  left.expect("a", "load", 100);
  left.expect("a", "read", 50);
  left.begin("a", "load", 100, 0);
  EXPECT_FALSE(left.seconds(0.1, 0.01));
  EXPECT_FALSE(left.seconds(5, std::nullopt));
  // A half took 5 s: the other one will, and the reads as much again.
  EXPECT_DOUBLE_EQ(left.seconds(5, 0.5).value(), 5 + 5);
}

TEST(time_left, of_a_kind_that_was_seen_follows_it_and_of_others_their_part) {
  bench::time_left left;
  for (const char* const part : {"a", "b"})
    for (const char* const kind : {"load", "read", "read"}) left.expect(part, kind, 10);
  left.begin("a", "load", 10, 0);
  left.end(10);
  left.begin("b", "load", 10, 10);
  left.end(40);
  EXPECT_DOUBLE_EQ(left.seconds(40, {}).value(), 2 * 10 + 2 * 30);
  left.begin("a", "read", 10, 40);
  left.end(41);
  left.begin("b", "read", 10, 41);
  // `b` took 30 s to load, and has been at it for 10.
  EXPECT_DOUBLE_EQ(left.seconds(51, {}).value(), 1 + 20 + 30);
  left.end(61);
  left.skip("b", "read", 10);
  EXPECT_DOUBLE_EQ(left.seconds(61, {}).value(), 1);
}

TEST(time_left, of_steps_that_end_by_time_is_their_time) {
  bench::time_left left;
  left.expect("a", "read", 7, true);
  EXPECT_DOUBLE_EQ(left.seconds(0, {}).value(), 7);
  left.begin("a", "read", 7, 0);
  EXPECT_DOUBLE_EQ(left.seconds(3, {}).value(), 4);
  EXPECT_DOUBLE_EQ(left.seconds(30, {}).value(), 0);
}

TEST(time_left, in_words) {
  const auto in_words = [](double seconds) {
    std::array<char, 40> text;
    return std::string(text.data(), bench::write_time_left(text.data(), text.size(), seconds));
  };
  EXPECT_EQ(in_words(0), "about 1 s left");
  EXPECT_EQ(in_words(8.6), "about 9 s left");
  EXPECT_EQ(in_words(62), "about 60 s left");
  EXPECT_EQ(in_words(400), "about 7 min left");
  EXPECT_EQ(in_words(10'000), "about 3 h left");
}

phase_result measured(const std::string& index, const std::string& phase, unsigned threads, unsigned repeat,
                      double throughput) {
  phase_result r;
  r.index = index;
  r.medium = "dram";
  r.phase = phase;
  r.threads = threads;
  r.repeat = repeat;
  r.operations = 100;
  r.throughput = throughput;
  r.latency.p50 = 1e9 / throughput;
  return r;
}

TEST(summary, median) {
  EXPECT_EQ(bench::median({3, 1, 2}), 2);
  EXPECT_EQ(bench::median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(bench::median({7}), 7);
}

TEST(summary, ratios_are_those_of_medians_within_phase_and_threads) {
  const std::vector<phase_result> results = {
      measured("a", "read", 1, 1, 300), measured("b", "read", 1, 1, 100), measured("b", "read", 1, 2, 120),
      measured("a", "read", 1, 2, 600), measured("a", "read", 1, 3, 240), measured("b", "read", 1, 3, 90),
      measured("a", "scan", 1, 1, 50),  measured("a", "read", 2, 1, 800), measured("b", "read", 2, 1, 200)};
  const std::vector<bench::summary_row> rows = bench::summarize(results, "b");
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0].index, "a");
  EXPECT_DOUBLE_EQ(rows[0].throughput, 300);
  EXPECT_DOUBLE_EQ(rows[0].ratio.value(), 3);
  EXPECT_DOUBLE_EQ(rows[0].spread, (600.0 - 240) / 300);
  EXPECT_DOUBLE_EQ(rows[1].ratio.value(), 1);
  EXPECT_EQ(rows[2].phase, "scan");
  EXPECT_FALSE(rows[2].ratio.has_value()) << "the baseline has no scan";
  EXPECT_EQ(rows[3].threads, 2U);
  EXPECT_DOUBLE_EQ(rows[3].ratio.value(), 4);
}

TEST(table, shows_ratios_and_what_was_left_out) {
  bench::bench_options o = small_run({});
  o.indexes = {"a", "b"};
  o.baseline = "b";
  bench::bench_report report;
  report.results = {measured("a", "read", 1, 1, 3e6), measured("b", "read", 1, 1, 1e6)};
  report.skipped = {{"b", 1, "scan", "it has no order"}};
  report.remarks = {"only a test"};
  const std::string table = bench::results_table(o, report);
  for (const char* const part : {"/ b", "3.000 M/s", "3.00x", "1.00x", "333 ns", "medium dram, 2 MB pages, 5k records",
                                 "left out: scan of b with 1 thread: it has no order", "note: only a test"})
    EXPECT_NE(table.find(part), std::string::npos) << part << "\n" << table;
}

using media::persistence_domain;

// A row of one run of `--persistence adr,eadr`; nothing in `followed`: the index has a library that decides.
phase_result under(persistence_domain asked, std::optional<persistence_domain> followed, const std::string& index,
                   const std::string& phase, std::optional<std::uint64_t> flushes) {
  phase_result r = measured(index, phase, 1, 1, asked == persistence_domain::adr ? 1e6 : 2e6);
  r.latency.mean = r.latency.p50;
  r.persistence = followed;
  r.measured_under = asked;
  if (flushes) r.persists = bench::persist_sums{*flushes, 100};
  return r;
}

bench::bench_options with_both_domains() {
  bench::bench_options o = small_run({});
  o.indexes = {"cceh", "pmdk_hash"};
  o.persistence = {persistence_domain::adr, persistence_domain::eadr};
  o.baseline = "cceh";
  return o;
}

TEST(table, shows_what_flushes_cost_where_there_were_any) {
  bench::bench_report report;
  for (const auto domain : {persistence_domain::adr, persistence_domain::eadr}) {
    const bool flushes = domain == persistence_domain::adr;
    report.results.push_back(under(domain, domain, "cceh", "insert", flushes ? 200 : 0));
    report.results.push_back(under(domain, domain, "cceh", "erase", std::nullopt));
    report.results.push_back(under(domain, domain, "cceh", "update", 0));
    report.results.push_back(under(domain, domain, "cceh", "read", std::nullopt));
    report.results.push_back(under(domain, domain, "cceh", "scan", flushes ? 1 : 0));
  }
  for (const bool reversed : {false, true}) {
    if (reversed) std::reverse(report.results.begin(), report.results.end());
    const std::string table = bench::results_table(with_both_domains(), report);
    const std::string line = reversed ? " of cceh with 1 thread: 500 ns on average under eadr, 1000 under adr: +100.0 %"
                                      : " of cceh with 1 thread: 1000 ns on average under adr, 500 under eadr: -50.0 %";
    for (const char* const phase : {"insert", "erase"})
      EXPECT_NE(table.find(phase + line), std::string::npos) << phase << "\n" << table;
    for (const char* const phase : {"update", "read", "scan"})
      EXPECT_EQ(table.find(phase + line), std::string::npos) << phase << "\n" << table;
  }
}

TEST(table, gives_no_domain_to_an_index_that_follows_none) {
  bench::bench_report report;
  for (const auto domain : {persistence_domain::adr, persistence_domain::eadr}) {
    report.results.push_back(under(domain, domain, "cceh", "insert", std::nullopt));
    report.results.push_back(under(domain, std::nullopt, "pmdk_hash", "insert", std::nullopt));
  }
  const std::vector<bench::summary_row> rows = bench::summarize(report.results, "cceh");
  ASSERT_EQ(rows.size(), 4U) << "one of each run, not the repeats of one";
  for (const bench::summary_row& row : rows) {
    EXPECT_EQ(row.persistence.has_value(), row.index == "cceh");
    EXPECT_DOUBLE_EQ(row.ratio.value(), 1) << "to the baseline of its own run";
  }
  const std::string table = bench::results_table(with_both_domains(), report);
  EXPECT_NE(table.find("insert of cceh with"), std::string::npos) << table;
  EXPECT_EQ(table.find("insert of pmdk_hash"), std::string::npos) << table;
}

TEST(table, shows_the_bytes_of_the_media_where_they_are_known) {
  bench::bench_report report;
  report.results = {measured("a", "insert", 1, 1, 1e6), measured("a", "insert", 1, 2, 1e6),
                    measured("b", "insert", 1, 1, 1e6)};
  for (const std::size_t repeat : {0U, 1U})
    report.results[repeat].media_bytes =
        bench::media_sums{.granule_bytes = 256, .bytes_read = 1000, .bytes_written = 51200};
  bench::bench_options o = small_run({});
  o.indexes = {"a", "b"};
  const std::string table = bench::results_table(o, report);
  EXPECT_NE(table.find("media B read  media B written"), std::string::npos) << table;
  EXPECT_NE(table.find(" 512"), std::string::npos) << table;
  report.results.erase(report.results.begin(), report.results.begin() + 2);
  EXPECT_EQ(bench::results_table(o, report).find("media B"), std::string::npos);
}

TEST(table, does_not_count_lines_that_leave_the_caches_unseen) {
  bench::bench_report report;
  for (const auto domain : {persistence_domain::adr, persistence_domain::eadr}) {
    phase_result r = under(domain, domain, "cceh", "insert", std::nullopt);
    r.accesses = media::counts{};
    r.accesses->device_lines_written = 4200;
    report.results.push_back(r);
  }
  const std::string table = bench::results_table(with_both_domains(), report);
  const std::size_t first = table.find("42.00");
  EXPECT_NE(first, std::string::npos) << table;
  EXPECT_EQ(table.find("42.00", first + 1), std::string::npos) << table;
}

}  // namespace
}  // namespace pmlab::tests
