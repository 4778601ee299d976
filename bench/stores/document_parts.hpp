// Parts of the results of `pmlab stores bench` as JSON, of stores of any kind; docs/results-schema.md defines every field.
#pragma once

#include "bench/stores/clock.hpp"
#include "bench/stores/measured.hpp"
#include "bench/stores/store_device.hpp"
#include "bench/stores/volume_subject.hpp"
#include "bench/support/machine.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace pmlab::store_bench {

using json = nlohmann::ordered_json;

// Null for nothing, for each of these.
[[nodiscard]] json latency_to_json(const std::optional<latency_figures>& l);
[[nodiscard]] json counts_to_json(const std::optional<medium_counts>& m);

[[nodiscard]] json device_to_json(const device_counts& of);
[[nodiscard]] json statistics_to_json(const std::vector<store_statistic>& of);

// Members of a case: the repetition and the amounts; then the times, with their clock; at last the opening and the
// answers.
void add_amounts(json& j, const measured& of);
void add_times(json& j, const measured& of, const run_clock& clock);
void add_answers(json& j, const measured& of);

// The origin of a run of any kind, as the user gave it.
struct run_origin {
  std::string command;
  std::string device;  // "emulated:p4610"
  std::string medium;
  std::uint64_t device_bytes = 0;
  std::vector<std::string> stores;
  std::string scale;  // of a modelled drive; empty: none
  std::string way;    // of a file; empty: none
};
// `options` of a document: its first members; and its last ones. `kind`: "block" or "kv".
[[nodiscard]] json begin_options(const run_origin& origin, const char* kind);
void add_lengths(json& options, const run_lengths& of);

// The document without `options` and `cases`, which follow, and the end.
[[nodiscard]] json begin_document(const bench::machine_facts& machine);

// The parts of a report that are the same for each kind.
struct run_end {
  const std::vector<final_check>& at_end;
  const std::vector<std::string>& first_wrong;
  const std::vector<std::string>& remarks;
  const std::optional<std::string>& failure;
  double seconds;
};
void end_document(json& document, const run_end& end);

template <class Result>
void end_document(json& document, const report_of<Result>& report) {
  end_document(document, run_end{report.at_end, report.first_wrong, report.remarks, report.failure, report.seconds});
}

}  // namespace pmlab::store_bench
