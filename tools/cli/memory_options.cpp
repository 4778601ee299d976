#include "tools/cli/memory_options.hpp"
#include "tools/cli/command.hpp"
#include <pmlab/base/error.hpp>

#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pmlab::cli {

void add_options_of_memory(CLI::App& app, memory_request& asked) {
  parsed_texts_of(app)("--medium", "dram", "dram | pmem:PATH | emulated:PROFILE[@PATH] | simulated:PROFILE",
                       [&asked](const std::string& text) {
                         asked.options.medium = bench::parse_medium(text);
                         if (asked.options.medium.counted)
                           throw error(fmt::format("medium {} counts, and this command measures times", text),
                                       "leave counted: out");
                       });
  app.add_flag("--overwrite", asked.options.overwrite, "Replace an existing pool");
  app.add_flag("--reuse", asked.options.reuse, "Use the free space of an existing pool; its contents stay as they are");
  app.add_flag("--quiet", asked.quiet, "No progress on stderr");
}

void check(const microbench::run_options& options) {
  if (options.reuse && options.overwrite)
    throw error("--reuse and --overwrite exclude each other: an old pool is used or replaced", "give one of them");
}

}  // namespace pmlab::cli
