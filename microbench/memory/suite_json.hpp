// What the JSON of a suite has, of a memory or of a drive. For sources that include nlohmann/json.hpp.
#pragma once

#include "bench/support/json_values.hpp"
#include "microbench/memory/results_json.hpp"

#include <nlohmann/json_fwd.hpp>

namespace pmlab::microbench {

// The options of the run that each suite has.
template <class Suite, class Json = nlohmann::ordered_json>
[[nodiscard]] Json options_to_json(const run_record& record, const Suite& s) {
  return Json{
      {"command", record.command}, {"suite", s.name}, {"suite_title", s.title}, {"filter", or_null(record.filter)}};
}

// The results, and how the run ended. to_json(result): a case.
template <class Json, class Report, class ToJson>
void add_report(Json& document, const Report& report, ToJson&& to_json) {
  document["cases"] = Json::array();
  for (const auto& r : report.results) document["cases"].push_back(to_json(r));
  document["remarks"] = report.remarks;
  document["failure"] = or_null(report.failure);
  document["seconds"] = report.seconds;
}

}  // namespace pmlab::microbench
