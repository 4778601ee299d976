// Parts of the results of `pmlab stores bench` as JSON, of stores of any kind; docs/results-schema.md defines every field.
#pragma once

#include "tools/stores/clock.hpp"
#include "tools/stores/measured.hpp"
#include "tools/stores/store_device.hpp"
#include "tools/stores/volume_subject.hpp"
#include "tools/support/machine.hpp"

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace pmlab::store_bench {

using json = nlohmann::ordered_json;

// Null for nothing, for each of these.
[[nodiscard]] json latency_to_json(const std::optional<latency_figures>& l);
[[nodiscard]] json counts_to_json(const std::optional<medium_counts>& m);
[[nodiscard]] json opening_to_json(const std::optional<opening_times>& o);

[[nodiscard]] json device_to_json(const device_counts& of);
[[nodiscard]] json statistics_to_json(const std::vector<store_statistic>& of);

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
