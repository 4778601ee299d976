// `pmlab stores bench`: what the user asked for, and the function that does it.
#pragma once

#include "tools/cli/command.hpp"

#include <string>
#include <vector>

namespace pmlab::cli {

// As on the command line; empty: not given.
struct stores_options {
  std::string kind = "block";
  std::vector<std::string> stores;
  std::string container = "pmem", medium = "dram", device = "memory", index = "cceh", merge;
  std::string device_bytes, volume_bytes, medium_bytes, ring = "16", chunk = "1M";
  std::string phases = "fill,overwrite,read", patterns = "random", sizes = "4K,16K", depths = "1,32", threads = "1";
  std::string operations, seconds, repetitions = "1", seed = "1", json;
  bool overwrite = false, quiet = false;
};

// Returns the exit status. Throws pmlab::error.
[[nodiscard]] int measure_stores(const stores_options& given, const arguments& command_line);

}  // namespace pmlab::cli
