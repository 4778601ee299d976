// The words of a command line, before their options are understood.
#pragma once

#include "tools/cli/command.hpp"

#include <string>

namespace pmlab::cli {

// "pool check" is a command of a command.
struct named_command {
  const CLI::App* app;
  std::string typed;               // "pmlab pool check"
  arguments::const_iterator rest;  // the words behind it
};

// Throws pmlab::error, with the nearest one, if a word that should name a command names none.
[[nodiscard]] named_command command_of(const arguments& given, const CLI::App& program);

// Throws pmlab::error: a word looks like an option, and is none of this command's; an option has no value, or an empty
// one, as of a shell's variable that is not set; a flag has a value; an option that takes one value is given twice. A
// value that begins with two dashes is written behind an equals sign: `--json --quiet` lacks a value. `end`: the end of
// all words.
void check_words(const named_command& command, arguments::const_iterator end);

}  // namespace pmlab::cli
