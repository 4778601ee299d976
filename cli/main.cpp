// The program pmlab: reads the command line and hands over to a subcommand.
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include <pmlab/bench/build_info.hpp>
#include <pmlab/cli/command.hpp>
#include <pmlab/cli/simulated_program.hpp>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pmlab::cli {
namespace {

int complain(std::string_view problem, int status) {
  fmt::print(stderr, "pmlab: error: {}\n", problem);
  return status;
}

// An argument that looks like a misspelt option, or subcommand, gets the nearest one as a remedy.
void reject_unknown_names(const arguments& given, const std::vector<command>& commands) {
  if (given.empty()) throw error("no command was given", "try `pmlab --help`");
  const auto named = std::find_if(commands.begin(), commands.end(),
                                  [&](const command& c) { return c.options->get_name() == given.front(); });
  if (named == commands.end()) {
    if (given.front().starts_with("-")) return;
    std::vector<std::string> names;
    names.reserve(commands.size());
    for (const command& c : commands) names.push_back(c.options->get_name());
    const std::vector<std::string_view> known(names.begin(), names.end());
    throw error(fmt::format("there is no command '{}'", given.front()),
                fmt::format("did you mean {}? `pmlab --help` names the commands", nearest(given.front(), known)));
  }
  std::vector<std::string> names;
  for (const CLI::Option* o : named->options->get_options())
    for (const std::string& name : o->get_lnames()) names.push_back("--" + name);
  const std::vector<std::string_view> known(names.begin(), names.end());
  for (const std::string& argument : given) {
    if (!argument.starts_with("--")) continue;
    const std::string name = argument.substr(0, argument.find('='));
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw error(
          fmt::format("pmlab {} has no option {}", given.front(), name),
          fmt::format("did you mean {}? `pmlab {} --help` names the options", nearest(name, known), given.front()));
  }
}

int run(const arguments& given) {
  CLI::App program("Indexes on persistent memory: benchmarks and experiments");
  program.name("pmlab");
  program.set_version_flag("--version", fmt::format("pmlab {} ({})", bench::build_version(), bench::build_commit()));
  program.require_subcommand(1);
  const std::vector<command> commands = {add_doctor(program),           add_list(program),
                                         add_bench(program, given),     add_microbench(program, given),
                                         add_calibrate(program, given), add_claims(program, given),
                                         add_run(program, given),       add_report(program),
                                         add_verify(program, given)};
  try {
    reject_unknown_names(given, commands);
    // CLI11 takes its arguments from the back.
    program.parse(arguments(given.rbegin(), given.rend()));
    for (const command& c : commands)
      if (c.options->parsed()) return c.run();
    return complain("no command was given; try `pmlab --help`", bad_input);
  } catch (const CLI::Success& asked) {
    return program.exit(asked);
  } catch (const CLI::ParseError& e) {
    return complain(fmt::format("{}; try `pmlab{} --help`", e.what(), given.empty() ? "" : " " + given.front()),
                    bad_input);
  } catch (const error& e) {
    return complain(e.what(), bad_input);
  }
}

}  // namespace
}  // namespace pmlab::cli

int main(int count, char** values) {
  try {
    pmlab::cli::start_program(values);
    return pmlab::cli::run({values + 1, values + count});
  } catch (const std::bad_alloc&) {
    std::fputs("pmlab: error: this machine has no more memory; give fewer --records\n", stderr);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "pmlab: error: %s\n", e.what());
  }
  return pmlab::cli::failure;
}
