// The contents of a pool, and its check.
#pragma once

#include "tools/pool/copy.hpp"
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/root_table.hpp>
#include "bench/catalogue/registry.hpp"
#include "bench/support/printable.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pmlab::pool {

// One root of a pool. `index`: the index that reads it; null: this build has none, and `problem` has the reason.
struct root {
  std::size_t position = 0;  // in the pool's table
  media::root_facts facts;
  const bench::index_description* index = nullptr;
  std::string problem = {};
  std::string words = {};                       // string keys: the root that holds their words
  std::string strings = {};                     // words: the root of the string keys that they are of
  std::optional<media::root_facts> types = {};  // a typed index: the root with the types of its keys and values
  // True if this build can read it.
  [[nodiscard]] bool is_readable() const noexcept { return index != nullptr || !words.empty(); }
  // Named when its process ended, and still empty; or of an index that keeps nothing. There is nothing to open.
  [[nodiscard]] bool is_empty() const noexcept { return index != nullptr && !facts.made; }
};

struct contents {
  std::string path;
  std::uint64_t file_bytes = 0;
  std::uint64_t allocated_bytes = 0;
  std::string survives;  // as text
  bool is_device = false;
  std::vector<root> roots;
};

// Throws as look_at does.
[[nodiscard]] contents contents_of(const std::string& path, patience each = default_patience);

// The roots `named`, as printable() shows them; all, if that is empty. Throws pmlab::error: there is none of that name,
// or this build cannot read it, or it has the words of string keys, which belong to those only. An index of unknown
// layout may own blocks that the others point to, so it can only be omitted by name.
[[nodiscard]] std::vector<root> chosen_roots(const contents& all, const std::vector<std::string>& named);

// The root with the words of `strings`, which is of string keys; `strings` itself, if it is of numbers.
[[nodiscard]] const root& words_of(const contents& all, const root& strings);

// The report of one root's index.
struct root_report {
  root of;
  std::optional<indexes::index_stats> shape = {};  // shape of one that was opened
  std::vector<std::string> violations = {};        // violations of the invariants of its index
  std::string problem = {};                        // why there is no shape, or no check; empty: there is one
};

// Opens each root that can be opened, each in a child process, so that a damaged one hides none of the others.
[[nodiscard]] std::vector<root_report> shapes_of(const contents& all, patience each = default_patience);

// As shapes_of, and runs the check of each index. Sound is a root without problem and violations.
[[nodiscard]] std::vector<root_report> checks_of(const contents& all, patience each = default_patience);
// Checks one of its roots.
[[nodiscard]] root_report check_of(const contents& all, const root& r, patience each = default_patience);

// For a program that is about to open the pool itself. Throws pmlab::error: opening the pool or an index of it in a
// child process crashed, took longer than `each`, or failed; or the check of an index found a violation. Roots that
// this build cannot read are ignored, as are pools of another layout: opening them reports it.
void refuse_damaged(const std::string& path, patience each);

}  // namespace pmlab::pool
