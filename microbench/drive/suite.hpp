// Suites of drives: the cases to measure, and how long.
#pragma once

#include "microbench/drive/case.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pmlab::drive {

struct suite {
  std::string name;
  std::string title;
  double seconds = 0.25;  // seconds of one repetition on a real clock
  unsigned least_repetitions = 3;
  unsigned most_repetitions = 6;
  std::vector<drive_case> cases;
};

// "drive": all sizes, orders and durabilities, at the depths that matter. "quick": the figures that datasheets have.
// "full": all combinations. Throws pmlab::error for any other name.
[[nodiscard]] suite suite_of(std::string_view name);

// Keeps the cases whose name has a match of the regular expression (ECMAScript, not anchored). Throws pmlab::error for
// an invalid one, and if no case is left.
void filter_cases(suite& s, const std::string& expression);

}  // namespace pmlab::drive
