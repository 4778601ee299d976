// The commands that are written in Python: experiments/pmlab. Nothing in them is hot, and a researcher extends them without
// a compiler.
#pragma once

#include "tools/cli/command.hpp"

#include <vector>

namespace pmlab::cli {

// `run`, `claims` and `report`. To run one, this process becomes Python (execv): signals then reach it directly, and no process is
// left between the shell and it. All options and their help belong to Python.
[[nodiscard]] std::vector<command> add_python_commands(CLI::App& program, const arguments& given);

}  // namespace pmlab::cli
