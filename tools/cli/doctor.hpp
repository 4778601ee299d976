// `pmlab doctor`: what a machine, or a path of it, really offers.
#pragma once

#include "tools/cli/command.hpp"

#include <string>

namespace pmlab::cli {

[[nodiscard]] command add_doctor(CLI::App& program);

// Prints which media `path` can hold. Returns the exit status; throws pmlab::error where nothing is, and no folder for it.
[[nodiscard]] int examine_path(const std::string& path);

}  // namespace pmlab::cli
