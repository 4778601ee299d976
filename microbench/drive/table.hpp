// The results of a drive as a table for people.
#pragma once

#include "microbench/drive/engine.hpp"

#include <string>

namespace pmlab::drive {

// One line for each measured case; then the skipped ones with the reason, and the remarks.
[[nodiscard]] std::string results_table(const run_options& options, const suite& s, target& on,
                                        const suite_report& report);

// The cases of a suite, one a line.
[[nodiscard]] std::string list_of_cases(const suite& s);

}  // namespace pmlab::drive
