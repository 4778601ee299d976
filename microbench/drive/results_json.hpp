// The results of a drive as JSON; docs/blocks.md defines every field.
#pragma once

#include "bench/engine/json_document.hpp"
#include "bench/support/machine.hpp"
#include "microbench/drive/engine.hpp"
#include "microbench/memory/results_json.hpp"

namespace pmlab::drive {

using microbench::run_record;

[[nodiscard]] bench::json_document results_to_json(const run_options& options, const run_record& record,
                                                   const bench::machine_facts& machine, const suite& s, target& on,
                                                   const suite_report& report);

}  // namespace pmlab::drive
