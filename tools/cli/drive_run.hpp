// `pmlab microbench --device`: a block device in place of a memory.
#pragma once

#include "tools/cli/command.hpp"

#include <string>

namespace pmlab::cli {

// As on the command line; empty: not given.
struct drive_options {
  std::string device, suite, filter, json, size, fio, spread;
  bool list = false, overwrite = false, quiet = false;
};

// Returns the exit status. Throws pmlab::error.
[[nodiscard]] int measure_drive(const drive_options& given, const arguments& command_line);

}  // namespace pmlab::cli
