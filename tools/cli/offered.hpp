// What the command line offers, as CLI11 knows it: for shell completion and the manual page.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace pmlab::cli {

// One option, or argument without a name.
struct offered_option {
  std::string name;          // "--index"; of an argument without a name, its place
  std::string value;         // "NAME[,NAME...]"; empty: a flag
  std::string what;          // "what to measure"
  bool is_argument = false;  // it has no name of its own

  // Words that `value` names itself: "on" and "off" of "on | off".
  [[nodiscard]] std::vector<std::string> words() const;
  // It names a file.
  [[nodiscard]] bool is_file() const;
};

struct offered_command {
  std::string name;  // "", "bench", "pool info"
  std::string what;
  std::string footer;
  std::vector<offered_option> options;
  std::vector<std::string> commands;  // below it: "info"
};

// All commands that --help shows, the program itself first.
[[nodiscard]] std::vector<offered_command> offered_by(const CLI::App& program);

}  // namespace pmlab::cli
