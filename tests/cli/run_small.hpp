// Runs the benchmark engine on containers of a test.
#pragma once

#include "bench/catalogue/registry.hpp"
#include "bench/engine/engine.hpp"
#include "bench/engine/options.hpp"
#include "bench/engine/phase.hpp"
#include "bench/support/progress.hpp"

#include <string>
#include <utility>
#include <vector>

namespace pmlab::tests {

// 5,000 records, 20,000 operations a phase.
inline bench::bench_options small_run(std::vector<bench::phase> phases) {
  bench::bench_options o;
  o.records = 5'000;
  o.operations = 20'000;
  o.phases = std::move(phases);
  o.phases.insert(o.phases.begin(), bench::make_phase(bench::phase_kind::load));
  return o;
}

inline bench::bench_report run(bench::bench_options options, const std::vector<bench::index_description>& indexes) {
  std::vector<const bench::index_description*> pointers;
  for (const bench::index_description& d : indexes) {
    pointers.push_back(&d);
    options.indexes.push_back(d.name);
  }
  if (options.baseline.empty()) options.baseline = options.indexes.back();
  bench::progress shown(bench::progress::style::quiet);
  return bench::run_bench(options, pointers, shown);
}

}  // namespace pmlab::tests
