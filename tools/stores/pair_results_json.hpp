// The results of `pmlab stores bench --kind kv` as JSON; docs/results-schema.md defines every field.
#pragma once

#include "tools/bench/json_document.hpp"
#include "tools/stores/pair_engine.hpp"
#include "tools/stores/pair_stores.hpp"
#include "tools/support/machine.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::store_bench {

// As the user gave it.
struct pair_run_record {
  std::string command;
  std::string device;   // "emulated:p4610"
  std::string staging;  // empty: none
  std::string medium;
  std::uint64_t device_bytes = 0;
  std::uint64_t staging_bytes = 0;
  unsigned devices = 1;
  std::vector<std::string> stores;
  std::string scale;  // of a modelled drive; empty: none
  std::string way;    // of a file; empty: none
  pair_setup setup;
};

[[nodiscard]] bench::json_document results_to_json(const pair_run_options& options, const pair_run_record& record,
                                                   const bench::machine_facts& machine, const run_clock& clock,
                                                   const pair_report& report);

}  // namespace pmlab::store_bench
