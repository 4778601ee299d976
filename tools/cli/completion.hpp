// `pmlab completion` and `pmlab man`: made from the command line that CLI11 knows, so that they cannot differ from it.
#pragma once

#include "tools/cli/command.hpp"

namespace pmlab::cli {

// They show `program`, which must live until they run.
[[nodiscard]] command add_completion(CLI::App& program);
[[nodiscard]] command add_manual(CLI::App& program);

}  // namespace pmlab::cli
