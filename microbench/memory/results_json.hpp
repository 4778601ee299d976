// The results of a suite as JSON; docs/microbench.md defines every field.
#pragma once

#include "bench/engine/json_document.hpp"
#include "bench/support/machine.hpp"
#include "microbench/memory/engine.hpp"
#include "microbench/memory/result.hpp"
#include "microbench/memory/suite.hpp"

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace pmlab::microbench {

// The options of the run, for the record.
struct run_record {
  std::string command;  // as the user gave it
  std::optional<std::string> filter;
};

[[nodiscard]] bench::json_document results_to_json(const run_options& options, const run_record& record,
                                                   const bench::machine_facts& machine, const suite& s,
                                                   const suite_report& report);

// The latencies of a case, in nanoseconds.
[[nodiscard]] nlohmann::ordered_json latency_to_json(const latency_figures& l);

// One element of `cases`.
[[nodiscard]] nlohmann::ordered_json case_to_json(const case_result& result);

}  // namespace pmlab::microbench
