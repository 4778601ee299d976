// The results of `pmlab stores bench` as JSON; docs/results-schema.md defines every field.
#pragma once

#include "tools/bench/json_document.hpp"
#include "tools/stores/engine.hpp"
#include "tools/support/machine.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::store_bench {

// As the user gave it.
struct run_record {
  std::string command;
  std::string device;  // "emulated:p4610"
  std::string medium;
  std::uint64_t device_bytes = 0;
  std::uint64_t volume_bytes = 0;
  std::uint64_t chunk_bytes = 0;
  std::vector<std::string> stores;
  std::string scale;  // of a modelled drive; empty: none
  std::string way;    // of a file; empty: none
};

[[nodiscard]] bench::json_document results_to_json(const run_options& options, const run_record& record,
                                                   const bench::machine_facts& machine, const run_clock& clock,
                                                   const run_report& report);

}  // namespace pmlab::store_bench
