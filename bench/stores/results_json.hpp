// The results of `pmlab stores` as JSON; docs/results-schema.md defines every field.
#pragma once

#include "bench/engine/json_document.hpp"
#include "bench/stores/clock.hpp"
#include "bench/stores/engine.hpp"
#include "bench/stores/pair_engine.hpp"
#include "bench/stores/pair_stores.hpp"
#include "bench/support/machine.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::store_bench {

// The origin of a run of any kind, as the user gave it.
struct run_origin {
  std::string command;
  std::string device;  // "emulated:p4610"
  std::string medium;
  std::uint64_t device_bytes = 0;
  std::vector<std::string> stores;
  std::string scale;  // the modelled drive has it; empty: none
  std::string way;    // how a file is opened; empty: there is none
};

struct run_record : run_origin {
  std::uint64_t volume_bytes = 0;
  std::uint64_t chunk_bytes = 0;
};

struct pair_run_record : run_origin {
  std::string staging;  // empty: none
  std::uint64_t staging_bytes = 0;
  unsigned devices = 1;
  pair_setup setup;
};

[[nodiscard]] bench::json_document results_to_json(const run_options& options, const run_record& record,
                                                   const bench::machine_facts& machine, const run_clock& clock,
                                                   const run_report& report);

[[nodiscard]] bench::json_document results_to_json(const pair_run_options& options, const pair_run_record& record,
                                                   const bench::machine_facts& machine, const run_clock& clock,
                                                   const pair_report& report);

}  // namespace pmlab::store_bench
