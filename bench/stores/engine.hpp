// Runs the cases of `pmlab stores volumes` on its stores, which take turns, and checks each answer.
#pragma once

#include "bench/stores/case.hpp"
#include "bench/stores/clock.hpp"
#include "bench/stores/contestant.hpp"
#include "bench/stores/measured.hpp"
#include "bench/support/progress.hpp"

#include <vector>

namespace pmlab::store_bench {

struct run_options : run_lengths {
  std::vector<bench_case> cases;
};

// One store in one case, once.
struct case_result : measured {
  store_labels of;
  bench_case what;
  volume_space space;
};

using run_report = report_of<case_result>;

// For each case each store in turn, `repetitions` times. A store is filled before its first case that is no `fill`, and
// overwritten until it is steady before its first overwrites of a size. A case that writes begins on a modelled drive
// in the state of datasheets, after writes of twice its buffer; one that reads begins on a drive that is idle. None of
// that is measured. Overwrites are at least so many that they are four times the buffer. An error in the middle ends
// the run, and the report has the results so far. Throws pmlab::error where a store cannot be made at all.
[[nodiscard]] run_report run_cases(const run_options& options, std::vector<contestant>& stores, const run_clock& clock,
                                   bench::progress& shown);

}  // namespace pmlab::store_bench
