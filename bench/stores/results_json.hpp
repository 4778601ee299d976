// The results of `pmlab stores bench` as JSON; docs/results-schema.md defines every field.
#pragma once

#include "bench/engine/json_document.hpp"
#include "bench/stores/document_parts.hpp"
#include "bench/stores/engine.hpp"
#include "bench/support/machine.hpp"

#include <cstdint>

namespace pmlab::store_bench {

struct run_record : run_origin {
  std::uint64_t volume_bytes = 0;
  std::uint64_t chunk_bytes = 0;
};

[[nodiscard]] bench::json_document results_to_json(const run_options& options, const run_record& record,
                                                   const bench::machine_facts& machine, const run_clock& clock,
                                                   const run_report& report);

}  // namespace pmlab::store_bench
