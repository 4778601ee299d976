// The options of every subcommand that measures a memory itself, rather than an index on it.
#pragma once

#include "microbench/memory/engine.hpp"

#include <string>

namespace CLI {
class App;
}

namespace pmlab::cli {

// As on the command line; an empty medium: not given.
struct memory_options {
  std::string medium;
  bool reuse = false, overwrite = false, quiet = false;
};

// Adds --medium, --overwrite, --reuse and --quiet.
void add_options_of_memory(CLI::App& app, memory_options& given);

// Reads all but --quiet into `options`. Throws pmlab::error.
void read_memory(const memory_options& given, microbench::run_options& options);

}  // namespace pmlab::cli
