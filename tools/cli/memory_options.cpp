#include "tools/cli/memory_options.hpp"
#include "tools/cli/command.hpp"
#include <pmlab/base/error.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pmlab::cli {

void add_options_of_memory(CLI::App& app, memory_options& given) {
  texts_of(app)("--medium", given.medium,
                "dram | pmem:PATH | emulated:PROFILE[@PATH] | simulated:PROFILE; dram if not given");
  app.add_flag("--overwrite", given.overwrite, "Replace an existing pool");
  app.add_flag("--reuse", given.reuse, "Use the free space of an existing pool; its contents stay as they are");
  app.add_flag("--quiet", given.quiet, "No progress on stderr");
}

void read_memory(const memory_options& given, microbench::run_options& options) {
  options.medium = bench::parse_medium(given.medium.empty() ? "dram" : given.medium);
  if (options.medium.counted)
    throw error(fmt::format("medium {} counts, and this command measures times", options.medium.text()),
                "leave counted: out");
  if (given.reuse && given.overwrite)
    throw error("--reuse and --overwrite exclude each other: an old pool is used or replaced", "give one of them");
  options.reuse = given.reuse;
  options.overwrite = given.overwrite;
}

}  // namespace pmlab::cli
