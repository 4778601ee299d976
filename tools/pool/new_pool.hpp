// A pool made from entries.
#pragma once

#include "tools/pool/strings_root.hpp"
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/root_table.hpp>
#include "bench/catalogue/registry.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::pool {

struct new_root {
  std::string name;
  const bench::index_description* index = nullptr;
  std::span<const indexes::entry> entries;  // ascending, each key once
  // Entries with string keys, instead of `entries`; `index` is that of their words.
  const string_entries* texts = nullptr;
  std::string_view values = {};                 // "words" or "blobs"
  std::optional<media::root_facts> types = {};  // types of a typed index

  [[nodiscard]] std::size_t count() const noexcept { return texts == nullptr ? entries.size() : texts->size(); }
};

// Room for these, generously.
[[nodiscard]] std::uint64_t bytes_for(const std::vector<new_root>& roots);

// Makes the pool `path` of `bytes` bytes and inserts the entries, then checks every index and counts its entries. The
// pool gets its name, durably, when all of that is done: before, it is PATH.filling-PROCESS-DIGITS. Throws
// pmlab::error, and leaves nothing behind: a file exists already, an index that cannot live in a pool, no space, a pool
// too small.
void make_pool(const std::string& path, std::uint64_t bytes, const std::vector<new_root>& roots);

// Throws pmlab::error: a file exists at `path`, or its folder does not. For use before the work.
void refuse_what_is_there(const std::string& path);

}  // namespace pmlab::pool
