// The results of a drive as JSON; docs/blocks.md defines every field.
#pragma once

#include "bench/engine/json_document.hpp"
#include "bench/support/machine.hpp"
#include "microbench/drive/engine.hpp"

#include <optional>
#include <string>

namespace pmlab::drive {

// The arguments as the user gave them.
struct run_record {
  std::string command;
  std::optional<std::string> filter;
};

[[nodiscard]] bench::json_document results_to_json(const run_options& options, const run_record& record,
                                                   const bench::machine_facts& machine, const suite& s, target& on,
                                                   const suite_report& report);

}  // namespace pmlab::drive
