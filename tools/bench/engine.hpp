// Runs a benchmark: every index loaded, then measured phase by phase in turns.
#pragma once

#include "tools/bench/options.hpp"
#include "tools/bench/result.hpp"
#include "tools/catalogue/registry.hpp"
#include "tools/support/progress.hpp"

#include <vector>

namespace pmlab::bench {

// Throws pmlab::error for options that do not go together, before anything is touched. `run_bench` asks it first.
void check(const bench_options& options, const std::vector<const index_description*>& indexes);

// For every number of threads: opens and loads all indexes, then, repeat by repeat and phase by phase, measures them
// one after the other; in repeat r the r-th index begins, so that none is always the first. What an insert phase adds
// the next erase phase takes away, so that every repeat meets the same entries.
//
// Throws pmlab::error for everything that can be found out before work begins (bad options, paths, space); what goes
// wrong later ends the run and stands in the report's `failure`, beside all that was measured until then.
[[nodiscard]] bench_report run_bench(const bench_options& options, const std::vector<const index_description*>& indexes,
                                     progress& shown);

// Room that the pool, or the simulated memory, of `index` needs for this run.
[[nodiscard]] std::uint64_t pool_bytes_for(const index_description& index, const bench_options& options);

}  // namespace pmlab::bench
