// --verify: a right index has no wrong answers, and every kind of wrong one has.
#include "run_small.hpp"
#include "small_map.hpp"

#include <gtest/gtest.h>

namespace pmlab::tests {
namespace {

using bench::bench_options;
using bench::bench_report;

std::vector<bench::phase> everything() {
  std::vector<bench::phase> phases = bench::parse_phases("read,absent,update,read,insert,scan,erase,read,absent");
  for (const char* const w : {"ycsb-a", "ycsb-d", "ycsb-e", "ycsb-f", "read=.2,insert=.2,update=.2,erase=.2,scan=.2"})
    phases.push_back(bench::parse_workload(w));
  bench::make_names_unique(phases);
  return phases;
}

bench_report verified(const bench::index_description& index, unsigned threads) {
  bench_options o = small_run(everything());
  o.verify = true;
  o.threads = {threads};
  o.repeats = 2;
  o.scan_length = 20;
  return run(o, {index});
}

class verify : public testing::TestWithParam<unsigned> {};

TEST_P(verify, finds_nothing_wrong_with_a_right_index) {
  const bench_report report = verified(describe("right"), GetParam());
  EXPECT_EQ(report.wrong_answers(), 0U);
  EXPECT_TRUE(report.first_wrong.empty()) << report.first_wrong.front();
  EXPECT_FALSE(report.failure.has_value());
  for (const bench::phase_result& r : report.results) EXPECT_TRUE(r.wrong.has_value()) << r.phase;
}

template <flaw Flaw>
void expect_found(unsigned threads) {
  const bench_report report = verified(describe<Flaw>("wrong"), threads);
  EXPECT_GT(report.wrong_answers(), 0U);
  EXPECT_FALSE(report.first_wrong.empty());
}

TEST_P(verify, finds_lost_inserts) { expect_found<flaw::loses_inserts>(GetParam()); }
TEST_P(verify, finds_forgotten_updates) { expect_found<flaw::forgets_updates>(GetParam()); }
TEST_P(verify, finds_entries_that_stay_after_erase) { expect_found<flaw::keeps_erased>(GetParam()); }
TEST_P(verify, finds_values_of_other_keys) { expect_found<flaw::mixes_values_up>(GetParam()); }
TEST_P(verify, finds_wrong_outcomes) { expect_found<flaw::answers_wrong_kind>(GetParam()); }
TEST_P(verify, finds_scans_that_leave_an_entry_out) { expect_found<flaw::scan_leaves_out>(GetParam()); }
TEST_P(verify, finds_scans_that_repeat_an_entry) { expect_found<flaw::scan_repeats>(GetParam()); }
TEST_P(verify, finds_scans_that_start_too_early) { expect_found<flaw::scan_starts_early>(GetParam()); }
TEST_P(verify, finds_scans_with_old_values) { expect_found<flaw::scan_shows_old_value>(GetParam()); }

INSTANTIATE_TEST_SUITE_P(threads, verify, testing::Values(1U, 2U, 3U));

TEST(verify_by_time, follows_what_was_executed) {
  bench_options o = small_run(everything());
  o.verify = true;
  o.threads = {2};
  o.seconds = 0.02;
  const bench_report report = run(o, {describe("right")});
  EXPECT_EQ(report.wrong_answers(), 0U) << report.first_wrong.front();
}

TEST(without_verify, lost_records_are_counted_where_counting_is_enough) {
  const bench_report report =
      run(small_run(bench::parse_phases("read")), {describe<flaw::loses_inserts>("wrong"), describe("right")});
  std::uint64_t wrong = 0;
  for (const bench::phase_result& r : report.results) {
    EXPECT_TRUE(r.index == "wrong" || !r.wrong.has_value());
    if (r.index == "wrong") wrong += r.wrong.value_or(0);
  }
  EXPECT_GT(wrong, 0U);
}

}  // namespace
}  // namespace pmlab::tests
