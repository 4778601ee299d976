// The commands that are written in Python: experiments/pmlab. Nothing in them is hot, and a researcher extends them
// without a compiler.
#pragma once

#include "tools/cli/command.hpp"

#include <string>
#include <vector>

namespace pmlab::cli {

// `run`, `claims` and `report`. To run one, this process becomes Python (execv): signals then reach it directly, and no
// process is left between the shell and it. All options and their help belong to Python.
[[nodiscard]] std::vector<command> add_python_commands(CLI::App& program, const arguments& given);

// This process becomes a script of the source tree that this program was built from (`script`: its path there). Throws
// pmlab::error if it is not there, or Python is not.
[[noreturn]] void become_script(const std::string& script, const std::vector<std::string>& given);

// Adds the options of these commands to `program`, with their texts and without effect: for completion and the manual
// page. Asks Python for them; adds none where there is no Python.
void describe_python_commands(CLI::App& program);

}  // namespace pmlab::cli
