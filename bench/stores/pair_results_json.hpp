// The results of `pmlab stores bench --kind kv` as JSON; docs/results-schema.md defines every field.
#pragma once

#include "bench/engine/json_document.hpp"
#include "bench/stores/document_parts.hpp"
#include "bench/stores/pair_engine.hpp"
#include "bench/stores/pair_stores.hpp"
#include "bench/support/machine.hpp"

#include <cstdint>
#include <string>

namespace pmlab::store_bench {

struct pair_run_record : run_origin {
  std::string staging;  // empty: none
  std::uint64_t staging_bytes = 0;
  unsigned devices = 1;
  pair_setup setup;
};

[[nodiscard]] bench::json_document results_to_json(const pair_run_options& options, const pair_run_record& record,
                                                   const bench::machine_facts& machine, const run_clock& clock,
                                                   const pair_report& report);

}  // namespace pmlab::store_bench
