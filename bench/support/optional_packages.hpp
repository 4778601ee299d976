// The libraries and programs of other projects that a build may be without, and what each of them brings. Their list is
// cmake/pmlab_optional.cmake.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace pmlab::bench {

struct optional_package {
  std::string title;
  std::string package;               // its name in Debian
  std::string brings;                // the parts that need it, as text
  std::vector<std::string> indexes;  // those of its peers that `pmlab bench` measures
  std::vector<std::string> stores;   // those that `pmlab stores` measures
  std::string program;               // to be found on PATH when it is used; empty: it is part of the build, or not
  bool built_in = false;

  // Whether it is part of the build, or its program is on PATH.
  [[nodiscard]] bool is_there() const;
  // One line for a user: whether it is there; and if not, the parts that are left out, and the remedy.
  [[nodiscard]] std::string state() const;
  // How to get these parts.
  [[nodiscard]] std::string remedy() const;
};

// All of them, of this build: those that it is without, too. In the order of the list.
[[nodiscard]] const std::vector<optional_package>& optional_packages();

// Those that are not there, for `pmlab list` and the Python commands: [{"title": ..., "package": ..., "brings": ...,
// "indexes": [...], "stores": [...], "remedy": ...}].
[[nodiscard]] nlohmann::ordered_json left_out_to_json(
    const std::vector<optional_package>& packages = optional_packages());

// Throws pmlab::error, with the remedy: `name` is an index or a store that this build is without.
void refuse_left_out(std::string_view name, const std::vector<optional_package>& packages = optional_packages());

// The path of a program that PATH has; nothing: it has none of this name.
[[nodiscard]] std::optional<std::string> path_of_program(std::string_view name);

}  // namespace pmlab::bench
