// Names and layouts of the roots of a string index in a medium: for code that inspects media.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <string>
#include <string_view>

namespace pmlab::strings {

// Suffix of the index's name, which is the root of its words: the root of the records' state.
inline constexpr std::string_view state_suffix = ":s";
// The layout of that root begins so.
inline constexpr std::string_view layout_prefix = "strings_";
// Kind of the words of a hash table.
inline constexpr std::string_view hashed_words = "hashed";
// Kind of the words of an ordered index; "digital" is part of the layout names of existing pools.
inline constexpr std::string_view trie_words = "digital";
// Kind of a tree of strings, beside an index of words that stays empty.
inline constexpr std::string_view tree_words = "tree";

// Suffix of a typed index's name: the root whose layout has the types of keys and values.
inline constexpr std::string_view types_suffix = ":t";
// That layout begins so.
inline constexpr std::string_view typed_layout_prefix = "typed_";

// `values`: Values::name.
[[nodiscard]] inline std::string layout_of(std::string_view words, std::string_view values) {
  return std::string(layout_prefix).append(words).append("_").append(values);
}

}  // namespace pmlab::strings
