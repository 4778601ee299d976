// Roots of string indexes: NAME:s, whose words are in the index of root NAME.
#pragma once

#include "tools/pool/index_report.hpp"
#include <pmlab/erased/any_index.hpp>
#include <pmlab/indexes/index.hpp>
#include "bench/catalogue/registry.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::pool {

// NAME, if a root of this name and layout belongs to a string index; otherwise std::nullopt.
[[nodiscard]] std::optional<std::string> words_root_of(std::string_view name, std::string_view layout);

// What the layout of a string index says.
struct strings_kind {
  indexes::string_form form;
  std::string values;  // "words" or "blobs"
};

// The parts of a string index: the open index of its words, its kind, and NAME.
struct string_root {
  erased::any_index& words;
  strings_kind kind;
  std::string_view name;
};

// From a layout like strings_hashed_blobs. Throws pmlab::error if it is none of this build's, or the words are in an
// index of another kind.
[[nodiscard]] strings_kind kind_of_strings(std::string_view layout, const bench::index_description& words,
                                           std::string_view name);

// These throw pmlab::error: no such values, the exceptions of string_index::open.
[[nodiscard]] index_report report_on_strings(const string_root& root, bool checks);

// Keys, and values: those of "words" as 8 bytes of this machine.
using string_entries = std::vector<std::pair<std::string, std::string>>;

[[nodiscard]] std::string bytes_of_word(std::uint64_t word);
[[nodiscard]] std::uint64_t word_of_bytes(std::string_view bytes) noexcept;

// All entries; keys ascending. Memory: all of them.
[[nodiscard]] string_entries entries_of_strings(const string_root& root);

// Puts them in. Throws pmlab::error, too, if there is no space.
void fill_strings(const string_root& root, const string_entries& entries);

}  // namespace pmlab::pool
