// Runs the cases of `pmlab stores pairs` on its stores, which take turns, and checks each answer.
#pragma once

#include "bench/stores/clock.hpp"
#include "bench/stores/measured.hpp"
#include "bench/stores/pair_case.hpp"
#include "bench/stores/pair_contestant.hpp"
#include "bench/support/progress.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pmlab::store_bench {

// `operations`: of a load they are all records.
struct pair_run_options : run_lengths {
  std::vector<pair_case> cases;
  std::uint64_t records = 0;
  std::size_t key_bytes = 16;
};

// Work that a case left for later.
struct settling {
  double time_ns = 0;
  std::uint64_t written_bytes = 0;          // to the main drives
  std::uint64_t staging_written_bytes = 0;  // to the staging drive
};

// One store in one case, once.
struct pair_result : measured {
  pair_labels of;
  pair_case what;
  std::optional<settling> after;  // nothing: the case changes nothing
  pair_space space;

  // The hit ratio of the store's own cache, by its statistics `cache_hits` and `cache_misses`; nothing: it has none.
  [[nodiscard]] std::optional<double> hit_ratio() const;
};

using pair_report = report_of<pair_result>;

// The keys of a run: with those that its inserts need.
[[nodiscard]] key_plan plan_of(const pair_run_options& options);
// The number of ranks of all keys of a run.
[[nodiscard]] std::uint64_t ranks_of(const pair_run_options& options);

// Throws pmlab::error for cases that a store cannot do: scans without order, keys too short or too long. Makes the
// stores.
void prepare_pair_stores(const pair_run_options& options, std::vector<pair_contestant>& stores);

// For each case each store in turn, `repetitions` times. A store is loaded before its first case that is no `load`;
// that is not measured. An error in the middle ends the run, and the report has the results so far. REQUIRES:
// prepare_pair_stores.
[[nodiscard]] pair_report run_pair_cases(const pair_run_options& options, std::vector<pair_contestant>& stores,
                                         const run_clock& clock, bench::progress& shown);

}  // namespace pmlab::store_bench
