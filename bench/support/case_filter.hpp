// --filter: the cases of a suite that a user names by a regular expression.
#pragma once

#include <pmlab/base/error.hpp>

#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace pmlab::bench {

// Where a user of --filter finds help.
struct filter_help {
  std::string_view suite;    // its name
  std::string_view example;  // an expression that matches cases of it
  std::string_view command;  // lists the names of the cases
};

// Keeps the cases whose `name` has a match of the regular expression (ECMAScript, not anchored). Throws pmlab::error
// for an invalid one, and if no case is left.
template <class Case>
void filter_by_name(std::vector<Case>& cases, const std::string& expression, const filter_help& help) {
  std::regex wanted;
  try {
    wanted = std::regex(expression);
  } catch (const std::regex_error& e) {
    throw error(fmt::format("--filter '{}' is no regular expression: {}", expression, e.what()),
                fmt::format("correct it, for example --filter '{}'", help.example));
  }
  std::erase_if(cases, [&](const Case& c) { return !std::regex_search(c.name, wanted); });
  if (cases.empty())
    throw error(fmt::format("--filter '{}' leaves no case of suite {}", expression, help.suite),
                fmt::format("`{}` names the cases", help.command));
}

}  // namespace pmlab::bench
