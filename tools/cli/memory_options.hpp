// The options of every subcommand that measures a memory itself, rather than an index on it.
#pragma once

#include "microbench/memory/engine.hpp"

namespace CLI {
class App;
}

namespace pmlab::cli {

// What is asked of a memory, and by whom.
struct memory_request {
  microbench::run_options options;
  bool quiet = false;
};

// Adds --medium, --overwrite, --reuse and --quiet.
void add_options_of_memory(CLI::App& app, memory_request& asked);

// Throws pmlab::error for options that exclude each other.
void check(const microbench::run_options& options);

}  // namespace pmlab::cli
