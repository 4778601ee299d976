// One thread of a case: keeps `depth` operations under way, takes their times, and checks their answers.
#pragma once

#include "tools/stores/case.hpp"
#include "tools/stores/clock.hpp"
#include "tools/stores/contestant.hpp"
#include "tools/support/progress.hpp"
#include "tools/workload/latency_histogram.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::store_bench {

struct worker_task {
  bench_case what;
  unsigned thread = 0;
  unsigned threads = 1;
  std::uint64_t operations = 0;  // of this thread; 0: `time` decides
  std::uint64_t time = 0;        // picoseconds
  std::uint64_t seed = 1;
};

struct worker_sums {
  std::uint64_t operations = 0;
  std::uint64_t reads = 0;
  std::uint64_t bytes = 0;       // of all operations
  std::uint64_t user_bytes = 0;  // written
  std::uint64_t began = 0;       // picoseconds
  std::uint64_t ended = 0;
  std::uint64_t own_ns = 0;  // of the benchmark itself: making data, checking answers
  std::uint64_t verified = 0;
  std::uint64_t wrong = 0;
  std::vector<std::string> first_wrong;
  workload::latency_histogram read_latency;
  workload::latency_histogram write_latency;
};

// Throws pmlab::error if an operation fails. Operations under way are waited for in any case.
[[nodiscard]] worker_sums run_worker(contestant& on, const worker_task& task, const run_clock& clock,
                                     bench::progress& shown);

// How many operations there are at most: the places of a `fill` or `discard`; otherwise no bound, 0.
[[nodiscard]] std::uint64_t most_operations(const bench_case& what, std::uint64_t volume_bytes);

// Writes, unmeasured, each block that was never written or was discarded.
void complete_fill(contestant& on, bench::progress& shown);

// Reads each block once. Returns the checks and their result.
[[nodiscard]] worker_sums check_all(contestant& on, const run_clock& clock, bench::progress& shown);

}  // namespace pmlab::store_bench
