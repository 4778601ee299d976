// The results of `pmlab stores` as a table for people.
#pragma once

#include "bench/stores/engine.hpp"
#include "bench/stores/pair_engine.hpp"

#include <string>

namespace pmlab::store_bench {

// A line for each store in each case: medians over the repetitions, and their spread; the ratio is to store `baseline`.
// Then the remarks.
[[nodiscard]] std::string results_table(const run_report& report, const std::string& baseline);
[[nodiscard]] std::string results_table(const pair_report& report, const std::string& baseline);

}  // namespace pmlab::store_bench
