// Entries of pools as text. For each root a header line, then a line for each entry, keys ascending:
//
//   # pmlab-dump 1 {"root":"orders","index":"fast_fair","layout_version":1,"entries":2}
//   42 4242
//   43 17
//
//   # pmlab-dump 1 {"root":"sessions","index":"cceh","strings":"blobs","layout_version":1,"entries":1}
//   a81f user=17;cart=3
//
// Keys and values are unsigned decimal numbers, as programs and `sort -n`, `awk` and `join` read them. The header must
// have "root" and "index"; "escaped": true, if the root's name is no UTF-8 and is written as printable() has it;
// "strings", if keys are strings (strings_text.hpp); "entries" is optional and must equal the number of entries that
// follow. "roots_left" is optional: at least so many roots follow. Each line of a root with
// "entries" has its end. So a text that was cut off anywhere is noticed. Blank lines mean nothing.
#pragma once

#include "tools/pool/strings_root.hpp"
#include <pmlab/indexes/index.hpp>
#include "bench/catalogue/registry.hpp"

#include <cstdio>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::pool {

struct dumped_root {
  std::string name;
  const bench::index_description* index = nullptr;
  std::vector<indexes::entry> entries;  // ascending, each key once
  // Entries with string keys, instead of `entries`; `index` is that of their words.
  string_entries texts = {};  // ascending, each key once
  std::string values = {};    // "words" or "blobs"; empty: these are numbers
};

// Throws pmlab::error if it cannot be written. `path` names the file in the error. `roots_left`: that are written
// behind this one.
void write_root(std::FILE* file, const std::string& path, const std::string& name,
                const bench::index_description& index, std::span<const indexes::entry> entries,
                std::size_t roots_left = 0);
void write_strings(std::FILE* file, const std::string& path, const std::string& name,
                   const bench::index_description& index, const std::string& values, const string_entries& entries,
                   std::size_t roots_left = 0);

// Throws pmlab::error that names file and line: no header, an unknown index, no number, a duplicate key, a duplicate
// root, fewer entries or roots than in the header, a line that was cut off.
[[nodiscard]] std::vector<dumped_root> parse_dump(std::string_view text, const std::string& path);

}  // namespace pmlab::pool
