// TOML files of users: suites, profiles. Tools that include this link toml++ themselves.
#pragma once

#include <pmlab/base/error.hpp>

#include <string>
#include <string_view>

#include <toml++/toml.h>

namespace pmlab::bench {

// "file.toml:12".
[[nodiscard]] inline std::string place_of(std::string_view file, const toml::source_region& source) {
  return std::string(file) + ":" + std::to_string(source.begin.line);
}
[[nodiscard]] inline std::string place_of(std::string_view file, const toml::node& node) {
  return place_of(file, node.source());
}

// `file` names the text in the error. Throws pmlab::error if it is not TOML.
[[nodiscard]] inline toml::table parse_toml(std::string_view text, std::string_view file) {
  try {
    return toml::parse(text, file);
  } catch (const toml::parse_error& e) {
    throw error(place_of(file, e.source()) + ": not TOML: " + std::string(e.description()), "correct that line");
  }
}

}  // namespace pmlab::bench
