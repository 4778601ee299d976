// The program pmlab: reads the command line and hands over to a subcommand.
#include "tools/cli/command.hpp"
#include "tools/cli/command_line.hpp"
#include "tools/cli/complaint.hpp"
#include "tools/cli/old_names.hpp"
#include "tools/cli/process_limits.hpp"
#include "tools/cli/simulated_program.hpp"
#include "tools/cli/standard_streams.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/remedy.hpp>
#include "bench/support/build_info.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pmlab::cli {
namespace {

int end_with(std::string_view problem, int status) {
  complain(problem);
  return status;
}

// `pmlab help COMMAND` is `pmlab COMMAND --help`.
arguments with_help_as_option(const arguments& typed) {
  if (typed.empty() || typed.front() != "help") return typed;
  arguments changed(typed.begin() + 1, typed.end());
  changed.emplace_back("--help");
  return changed;
}

int run(const arguments& typed) {
  arguments given;
  try {
    given = in_new_names(with_help_as_option(typed));
  } catch (const error& e) {
    return end_with(e.what(), bad_input);
  }
  CLI::App program("Indexes on persistent memory: benchmarks and experiments");
  program.name("pmlab");
  program.set_version_flag("--version", fmt::format("pmlab {} ({})", bench::build_version(), bench::build_commit()));
  program.require_subcommand(1);
  std::vector<command> commands = {add_list(program),
                                   add_bench(program, given),
                                   add_microbench(program, given),
                                   add_calibrate(program, given),
                                   add_stores(program, given),
                                   add_verify(program, given)};
  for (command& more : own_commands(program, given)) commands.push_back(std::move(more));
  try {
    check_words(command_of(given, program), given.end());
    // CLI11 expects its arguments in reverse order.
    program.parse(arguments(given.rbegin(), given.rend()));
    for (const command& c : commands)
      if (c.options->parsed()) return c.run();
    return end_with("no command was given; try `pmlab --help`", bad_input);
  } catch (const CLI::Success& asked) {
    return program.exit(asked);
  } catch (const CLI::ParseError& e) {
    return end_with(fmt::format("{}; try `{} --help`", e.what(), command_of(given, program).typed), bad_input);
  } catch (const error& e) {
    return end_with(e.what(), bad_input);
  }
}

// Output may still be in a buffer: a full device is detected here at the latest.
int end(int status) {
  std::cout.flush();
  const bool is_flushed = std::fflush(stdout) == 0;
  const int number = is_flushed ? 0 : errno;  // where an earlier write has failed, its reason is not known any more
  if (is_flushed && std::ferror(stdout) == 0 && std::cout.good()) return status;
  complain(fmt::format("cannot write to standard output{}{}; give it a file, a pipe or a terminal with room",
                       number == 0 ? "" : ": ", number == 0 ? "" : std::strerror(number)));
  return status == success ? failure : status;
}

}  // namespace
}  // namespace pmlab::cli

int main(int count, char** values) {
  pmlab::cli::hold_closed_streams();
  pmlab::cli::report_file_size_limit();
  try {
    pmlab::cli::check_stack_limit();
    pmlab::cli::start_program(values);
    return pmlab::cli::end(pmlab::cli::run({values + 1, values + count}));
  } catch (const std::bad_alloc&) {
    // Without an allocation.
    std::fputs("pmlab: error: this machine has no more memory; give fewer --records, or a part of the trace\n", stderr);
  } catch (const pmlab::error& e) {
    // The start failed: run() reports its own errors.
    return pmlab::cli::end_with(e.what(), pmlab::cli::bad_input);
  } catch (const std::filesystem::filesystem_error& e) {
    // Its own text has the name of the call, and no remedy.
    pmlab::cli::complain(fmt::format("{}: {}; {}", e.path1().string(), e.code().message(),
                                     pmlab::remedy_for(e.code().value(), "check the path and its permissions")));
  } catch (const std::exception& e) {
    // A long table does not wait for the end.
    if (std::ferror(stdout) != 0) return pmlab::cli::end(pmlab::cli::failure);
    const auto* const refused = dynamic_cast<const std::system_error*>(&e);
    if (refused != nullptr && refused->code() == std::errc::resource_unavailable_try_again) {
      pmlab::cli::complain(
          "no thread can be started; give fewer --threads, or let this user have more of them (ulimit -u)");
    } else {
      pmlab::cli::complain(e.what());
    }
  }
  return pmlab::cli::failure;
}
