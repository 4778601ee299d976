// From an experiment to the calls of pmlab that it stands for.
#pragma once

#include "experiments/experiment.hpp"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::experiments {

// One call of pmlab.
struct cell {
  std::string experiment;
  std::string name;                                         // "hybrid/simulated-aep": of its files, and of errors
  std::vector<std::pair<std::string, std::string>> values;  // of the matrix
  // After "pmlab": {"bench", "--index", ...}. "{pool}" in a word stands for a pool file in a folder of the run's own,
  // "{source}" for pmlab's source tree.
  std::vector<std::string> words;
  double weight = 1;  // how long it may take, next to other cells; for the time left
};

// In the order of the matrix. Throws pmlab::error: two cells would have the same name.
[[nodiscard]] std::vector<cell> plan(const experiment& e, std::string_view scale);

// What follows the first `option` among the words; empty: nothing does.
[[nodiscard]] std::string value_of(const std::vector<std::string>& words, std::string_view option);

}  // namespace pmlab::experiments
