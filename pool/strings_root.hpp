// Roots of string indexes: NAME:s, whose words are in the index of root NAME.
#pragma once

#include <pmlab/bench/any_index.hpp>
#include <pmlab/indexes/index.hpp>

#include <optional>
#include <string>
#include <string_view>

namespace pmlab::pool {

// NAME, if a root of this name and layout is that of a string index; nothing: it is not.
[[nodiscard]] std::optional<std::string> words_root_of(std::string_view name, std::string_view layout);

// What string keys say of themselves.
struct strings_report {
  indexes::check_report found;  // empty, unless it was asked for
  indexes::index_stats shape;   // all zero if something was found
};

// Opens the string index of this layout over `words`, the open index of root `name`. Throws pmlab::error: the layout is
// none of this build's, the words are in an index of another kind, what string_index::open throws.
[[nodiscard]] strings_report report_on_strings(bench::any_index& words, bool words_are_ordered, std::string_view name,
                                               std::string_view layout, bool checks);

}  // namespace pmlab::pool
