#include "tools/cli/command_line.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pmlab::cli {
namespace {

std::vector<const CLI::App*> subcommands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

std::string nearest_to(std::string_view wrong, const std::vector<std::string>& names) {
  return nearest(wrong, std::vector<std::string_view>(names.begin(), names.end()));
}

error unknown_option(const named_command& command, const std::string& name) {
  std::vector<std::string> names;
  for (const CLI::Option* o : command.app->get_options()) {
    for (const std::string& known : o->get_lnames()) names.push_back("--" + known);
    for (const std::string& known : o->get_snames()) names.push_back("-" + known);
  }
  return {fmt::format("{} has no option {}", command.typed, name),
          fmt::format("did you mean {}? `{} --help` names the options", nearest_to(name, names), command.typed)};
}

bool is_flag(const CLI::Option& o) { return o.get_items_expected_max() == 0; }

bool takes_one_value(const CLI::Option& o) {
  return o.get_items_expected_max() == 1 && o.get_multi_option_policy() == CLI::MultiOptionPolicy::Throw;
}

void refuse_empty(const std::string& name, std::string_view value) {
  if (value.empty())
    throw error(fmt::format("{} has an empty value", name),
                "give it one, or leave it out; a variable that is not set may be the reason");
}

// Returns the last word that belongs to the option.
arguments::const_iterator check_value(const CLI::Option& option, const std::string& name,
                                      arguments::const_iterator word, const named_command& command,
                                      arguments::const_iterator end) {
  const std::size_t equals = word->find('=');
  if (equals != std::string::npos) {
    const std::string value = word->substr(equals + 1);
    if (is_flag(option)) throw error(fmt::format("{} takes no value", name), fmt::format("leave '={}' out", value));
    refuse_empty(name, value);
    return word;
  }
  const auto next = word + 1;
  const bool is_there = next != end && !next->starts_with("--");
  if (is_flag(option) || (!is_there && option.get_items_expected_min() == 0)) return word;
  if (!is_there)
    throw error(fmt::format("{} has no value", name),
                fmt::format("write {} VALUE; `{} --help` describes it", name, command.typed));
  refuse_empty(name, *next);
  return next;
}

}  // namespace

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

void check_words(const named_command& command, arguments::const_iterator end) {
  // Python knows its options, and checks their words itself (arguments.py).
  if (command.app->get_prefix_command()) return;
  // A word with one dash may be a value of a command.
  const std::string_view dashes = command.app->get_parent() == nullptr ? "-" : "--";
  std::vector<const CLI::Option*> seen;
  for (auto word = command.rest; word != end && *word != "--"; ++word) {
    if (!word->starts_with(dashes)) continue;
    const std::string name = word->substr(0, word->find('='));
    const CLI::Option* const option = command.app->get_option_no_throw(name);
    if (option == nullptr) throw unknown_option(command, name);
    if (takes_one_value(*option) && std::ranges::find(seen, option) != seen.end())
      throw error(fmt::format("{} is given twice", name), "give it once");
    seen.push_back(option);
    word = check_value(*option, name, word, command, end);
  }
}

}  // namespace pmlab::cli
