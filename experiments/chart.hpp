// The charts of an experiment, as its file describes them; scripts/report draws them.
#pragma once

#include "experiments/experiment.hpp"

#include <string_view>
#include <vector>

#include <toml++/toml.h>

namespace pmlab::experiments {

// Of one [[chart]]. `axes`: keys of the matrix. Throws pmlab::error: unknown kind, quantity or key.
[[nodiscard]] chart read_chart(const toml::table& table, const std::vector<axis>& axes, std::string_view file);

}  // namespace pmlab::experiments
