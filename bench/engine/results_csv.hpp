// The results of a run as a table with commas; docs/results-schema.md names its columns.
#pragma once

#include "bench/engine/result.hpp"

#include <string>

namespace pmlab::bench {

// A line with the names of the columns, then one for each phase_result. A figure that does not apply is empty.
[[nodiscard]] std::string results_to_csv(const bench_report& report);

}  // namespace pmlab::bench
