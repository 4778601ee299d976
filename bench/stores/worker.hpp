// One thread of a case, over a volume or a key-value store, and work on all of a volume that is not measured.
#pragma once

#include "bench/stores/case.hpp"
#include "bench/stores/clock.hpp"
#include "bench/stores/contestant.hpp"
#include "bench/stores/measured.hpp"
#include "bench/stores/pair_case.hpp"
#include "bench/stores/pair_contestant.hpp"
#include "bench/support/progress.hpp"

#include <cstdint>

namespace pmlab::store_bench {

using worker_task = worker_task_of<bench_case>;
using pair_task = worker_task_of<pair_case>;

// Throws pmlab::error if an operation fails. Operations under way are waited for in any case.
[[nodiscard]] worker_sums run_worker(contestant& on, const worker_task& task, const run_clock& clock,
                                     bench::progress& shown);
[[nodiscard]] worker_sums run_worker(pair_contestant& on, const pair_task& task, const run_clock& clock,
                                     bench::progress& shown);

// Writes, unmeasured, each block that was never written or was discarded.
void complete_fill(contestant& on, const run_clock& clock, bench::progress& shown);

// Reads each block once. Returns the checks and their result.
[[nodiscard]] worker_sums check_all(contestant& on, const run_clock& clock, bench::progress& shown);

// The ranks that a load with these keys needs, those of a plan aside.
[[nodiscard]] std::uint64_t ranks_of_load(const pair_case& c, std::uint64_t records);

}  // namespace pmlab::store_bench
