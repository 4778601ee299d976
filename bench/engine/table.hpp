// The results of a run as one table for people.
#pragma once

#include "bench/engine/options.hpp"
#include "bench/engine/result.hpp"

#include <string>

namespace pmlab::bench {

// With its context: medium, records, remarks, phases left out with the reason.
[[nodiscard]] std::string results_table(const bench_options& options, const bench_report& report);

}  // namespace pmlab::bench
