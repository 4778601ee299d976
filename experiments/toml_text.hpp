// What is said of a place in a TOML file, and values as the text that a command line has.
#pragma once

#include "tools/support/toml_file.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

namespace pmlab::experiments {

using bench::place_of;

// A text, a number or a truth value as it would be typed. Throws pmlab::error for anything else; `key` names it.
[[nodiscard]] std::string text_of(const toml::node& node, std::string_view key, std::string_view file);

// A list of texts. Throws pmlab::error.
[[nodiscard]] std::vector<std::string> texts_of(const toml::node& node, std::string_view key, std::string_view file);

// Throws pmlab::error, with the nearest, if a key of `table` is none of `known`.
void refuse_unknown_keys(const toml::table& table, const std::vector<std::string_view>& known, std::string_view file);

}  // namespace pmlab::experiments
