// `pmlab doctor`: what a machine, or a path of it, really offers.
#pragma once

#include "tools/cli/command.hpp"

#include <string>

namespace pmlab::cli {

[[nodiscard]] command add_doctor(CLI::App& program);

// Prints the facts and latencies of the drive below a folder, measured on a file of 16 MiB that is removed again. About
// a second.
void examine_drive_below(const std::string& folder);

// The same of a block device, whose content stays as it is: blocks are written with what they have.
void examine_block_device(const std::string& path);

// Prints which media `path` can hold, and the facts of the drive below it. Returns the exit status; throws pmlab::error
// where nothing is, and no folder for it.
[[nodiscard]] int examine_path(const std::string& path);

}  // namespace pmlab::cli
