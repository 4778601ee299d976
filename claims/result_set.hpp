// The results that `pmlab run` left in a folder, as evidence for the claims.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace pmlab::claims {

// Everything that was measured on one medium.
struct medium_results {
  std::string medium;       // "simulated:aep"; pools without their paths: "pmem", "emulated:aep"
  nlohmann::json document;  // as `evidence` takes it
};

// One for each medium, in the order in which they were measured. The cases of microbenchmarks are as they are; each
// index, number of threads and phase of a benchmark becomes a case
//
//   EXPERIMENT[/KEY=VALUE...]/index=INDEX/threads=N/phase=PHASE
//
// with the keys of the matrix that are none of medium, index and threads. Its `value` is the throughput ("ops/s"), the
// other figures keep their places below it ("latency_ns/mean"), each the median over the repeats. threads=most is the
// case with the most threads. Cells that failed are left out. Throws pmlab::error: no manifest.json, a file that does
// not hold what it should.
[[nodiscard]] std::vector<medium_results> read_result_set(const std::filesystem::path& folder);

// EXPERIMENT/index=INDEX/threads=THREADS/phase=PHASE; `experiment` with its keys of the matrix, `threads`: a number, or
// "most".
[[nodiscard]] std::string case_name(std::string_view experiment, std::string_view index, std::string_view threads,
                                    std::string_view phase);

// The cases of one document that `pmlab bench --json` wrote. `prefix`: what their names begin with, without the slash.
[[nodiscard]] nlohmann::json cases_of_bench(const nlohmann::json& document, const std::string& prefix);

// A file that holds JSON. Throws pmlab::error.
[[nodiscard]] nlohmann::json read_json(const std::filesystem::path& file);

}  // namespace pmlab::claims
