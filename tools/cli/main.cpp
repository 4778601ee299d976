// The program pmlab: reads the command line and hands over to a subcommand.
#include "tools/cli/command.hpp"
#include "tools/cli/old_names.hpp"
#include "tools/cli/simulated_program.hpp"
#include "tools/cli/standard_streams.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include "bench/support/build_info.hpp"
#include "bench/support/colour.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pmlab::cli {
namespace {

int complain(std::string_view problem, int status) {
  const std::string who = "pmlab: error:";
  // Nothing is thrown where standard error is full: the status still tells.
  const std::string line = fmt::format("{} {}\n", shows_colours(stderr) ? reddened(who, who) : who, problem);
  std::fputs(line.c_str(), stderr);
  return status;
}

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// "pool check" is a command of a command.
struct named_command {
  const CLI::App* app;
  std::string typed;  // "pmlab pool check"
  arguments::const_iterator rest;
};

std::string nearest_to(std::string_view wrong, const std::vector<std::string>& names) {
  return nearest(wrong, std::vector<std::string_view>(names.begin(), names.end()));
}

// Throws pmlab::error, with the nearest one, if a word that should name a command names none.
named_command command_of(const arguments& given, const CLI::App& program) {
  named_command found{&program, "pmlab", given.begin()};
  for (auto below = subcommands_of(program); !below.empty(); below = subcommands_of(*found.app)) {
    if (found.rest == given.end()) throw error("no command was given", fmt::format("try `{} --help`", found.typed));
    const std::string& word = *found.rest;
    if (word.starts_with("-")) break;
    const auto named =
        std::find_if(below.begin(), below.end(), [&](const CLI::App* c) { return c->get_name() == word; });
    if (named == below.end()) {
      std::vector<std::string> names;
      for (const CLI::App* c : below) names.push_back(c->get_name());
      throw error(fmt::format("there is no command '{}'", word),
                  fmt::format("did you mean {}? `{} --help` names the commands", nearest_to(word, names), found.typed));
    }
    found.app = *named;
    found.typed.append(" ").append(word);
    ++found.rest;
  }
  return found;
}

// An argument that looks like a misspelt option, or command, gets the nearest one as a remedy.
void reject_unknown_names(const arguments& given, const CLI::App& program) {
  const named_command named = command_of(given, program);
  // Python knows its options, and refuses misspelt ones itself.
  if (named.app->get_prefix_command()) return;
  std::vector<std::string> names;
  for (const CLI::Option* o : named.app->get_options()) {
    for (const std::string& name : o->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : o->get_snames()) names.push_back("-" + name);
  }
  // A word with one dash may be a value of a command.
  const std::string_view dashes = named.app == &program ? "-" : "--";
  for (auto word = named.rest; word != given.end(); ++word) {
    if (!word->starts_with(dashes)) continue;
    const std::string name = word->substr(0, word->find('='));
    if (std::find(names.begin(), names.end(), name) == names.end())
      throw error(fmt::format("{} has no option {}", named.typed, name),
                  fmt::format("did you mean {}? `{} --help` names the options", nearest_to(name, names), named.typed));
  }
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
    return complain(e.what(), bad_input);
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
    reject_unknown_names(given, program);
    // CLI11 expects its arguments in reverse order.
    program.parse(arguments(given.rbegin(), given.rend()));
    for (const command& c : commands)
      if (c.options->parsed()) return c.run();
    return complain("no command was given; try `pmlab --help`", bad_input);
  } catch (const CLI::Success& asked) {
    return program.exit(asked);
  } catch (const CLI::ParseError& e) {
    return complain(fmt::format("{}; try `{} --help`", e.what(), command_of(given, program).typed), bad_input);
  } catch (const error& e) {
    return complain(e.what(), bad_input);
  }
}

// Output may still be in a buffer: a full device is detected here at the latest.
int end(int status) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good()) return status;
  const int number = errno;
  complain(fmt::format("cannot write to standard output{}{}; give it a file, a pipe or a terminal with room",
                       number == 0 ? "" : ": ", number == 0 ? "" : std::strerror(number)),
           failure);
  return status == success ? failure : status;
}

}  // namespace
}  // namespace pmlab::cli

int main(int count, char** values) {
  pmlab::cli::hold_closed_streams();
  try {
    pmlab::cli::start_program(values);
    return pmlab::cli::end(pmlab::cli::run({values + 1, values + count}));
  } catch (const std::bad_alloc&) {
    std::fputs("pmlab: error: this machine has no more memory; give fewer --records, or a part of the trace\n", stderr);
  } catch (const pmlab::error& e) {
    // The start failed: run() reports its own errors.
    return pmlab::cli::complain(e.what(), pmlab::cli::bad_input);
  } catch (const std::exception& e) {
    // A long table does not wait for the end.
    if (std::ferror(stdout) != 0) return pmlab::cli::end(pmlab::cli::failure);
    std::fprintf(stderr, "pmlab: error: %s\n", e.what());
  }
  return pmlab::cli::failure;
}
