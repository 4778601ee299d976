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
  std::string medium = "dram", device = "memory";
  std::string device_bytes, medium_bytes, phases, patterns, depths, threads = "1";
  std::string operations, seconds, repetitions = "1", seed = "1", json;
  bool overwrite = false, quiet = false;
  // Options of --kind block.
  std::string container = "pmem", index = "cceh", merge, volume_bytes, ring = "16", chunk = "1M", sizes = "4K,16K";
  // Options of --kind kv.
  std::string staging, staging_bytes, devices = "1", keys = "100k", key_bytes = "16", values = "1000";
  std::string cache, memory = "0", loss_ms = "100", log = "on", place, memtable = "dram";
};

// Returns the exit status. Throws pmlab::error.
[[nodiscard]] int measure_stores(const stores_options& given, const arguments& command_line);
// Runs --kind kv.
[[nodiscard]] int measure_pair_stores(const stores_options& given, const arguments& command_line);

}  // namespace pmlab::cli
