// The results of a suite as a table for people.
#pragma once

#include "microbench/memory/engine.hpp"
#include "microbench/memory/result.hpp"
#include "microbench/memory/suite.hpp"

#include <string>

namespace pmlab::microbench {

// One line for each measured case, in groups; then the skipped ones with the reason, and the remarks.
[[nodiscard]] std::string results_table(const run_options& options, const suite& s, const suite_report& report);

// The cases of a suite, one a line, with their fields.
[[nodiscard]] std::string list_of_cases(const suite& s);

}  // namespace pmlab::microbench
