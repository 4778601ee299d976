// A text that a user names: one that the program carries in itself, or a file.
#pragma once

#include "bench/support/named_text.hpp"
#include "bench/support/read_file.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab {

struct found_text {
  std::string text;
  std::string file;  // its path, or NAME.toml of a text of the program
  bool is_builtin = false;
};

// The text of that name among `builtins`, or the file of that path; `what` names it in the error: "suite file".
// std::nullopt: no text has the name. Throws pmlab::error if a file cannot be read.
[[nodiscard]] inline std::optional<found_text> find_text(std::string_view name_or_path,
                                                         std::span<const named_text> builtins,
                                                         const std::string& what) {
  constexpr std::size_t most_bytes = 1 << 20;
  std::string path(name_or_path);
  if (path.ends_with(".toml") || path.find('/') != std::string::npos)
    return found_text{read_file(path, what, most_bytes), path};
  for (const named_text& builtin : builtins)
    if (builtin.name == name_or_path) return found_text{std::string(builtin.text), path + ".toml", true};
  return std::nullopt;
}

// The names of `builtins`, sorted.
[[nodiscard]] inline std::vector<std::string_view> names_of(std::span<const named_text> builtins) {
  std::vector<std::string_view> names;
  for (const named_text& builtin : builtins) names.push_back(builtin.name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace pmlab
