// Runs a benchmark: every index loaded, then measured phase by phase in turns.
#pragma once

#include "bench/catalogue/registry.hpp"
#include "bench/engine/options.hpp"
#include "bench/engine/result.hpp"
#include "bench/support/progress.hpp"

#include <vector>

namespace pmlab::bench {

// Throws pmlab::error for inconsistent options, before anything is changed. `run_bench` calls it first.
void check(const bench_options& options, const std::vector<const index_description*>& indexes);

// For every number of threads: opens and loads all indexes, then, repeat by repeat and phase by phase, measures them
// one after the other; in repeat r the r-th index begins, so that none is always the first. An erase phase removes the
// entries of the insert phase before, so that every repeat runs on the same entries.
//
// Throws pmlab::error for every error that can be detected before work begins (bad options, paths, space); a later
// error ends the run and is in the report's `failure`, beside the results until then.
[[nodiscard]] bench_report run_bench(const bench_options& options, const std::vector<const index_description*>& indexes,
                                     progress& shown);

// Room that the pool, or the simulated memory, of `index` needs for this run.
[[nodiscard]] std::uint64_t pool_bytes_for(const index_description& index, const bench_options& options);

}  // namespace pmlab::bench
