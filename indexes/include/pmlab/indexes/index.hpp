// The types that all indexes share, and the concepts through which tests, benchmarks, caches and hybrids use them.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::indexes {

// All 2^64 keys and all 2^64 values are allowed.
using key_type = std::uint64_t;
// See key_type.
using value_type = std::uint64_t;

// A key with its value.
struct entry {
  key_type key;      // any
  value_type value;  // any
  friend bool operator==(const entry&, const entry&) = default;
};

// The outcome of a changing operation. Its effect is durable (on a durable medium) when it is returned.
enum class outcome : std::uint8_t {
  inserted,  // the key was absent and is present now
  updated,   // the key was there and has the new value now
  erased,    // the key was present and is absent now
  exists,    // insert: the key was there; nothing was changed
  absent,    // update, erase: the key was absent; nothing was changed
  full,      // the medium has no space; nothing was changed, and the index keeps serving
};

// The enumerator's name.
[[nodiscard]] constexpr std::string_view to_string(outcome o) noexcept {
  switch (o) {
    case outcome::inserted: return "inserted";
    case outcome::updated: return "updated";
    case outcome::erased: return "erased";
    case outcome::exists: return "exists";
    case outcome::absent: return "absent";
    case outcome::full: return "full";
  }
  return "?";
}

// Shape and space of an index at one moment. Exact when no writer runs.
struct index_stats {
  std::uint64_t entries = 0;       // keys that are present
  std::uint64_t nodes = 0;         // segments, tree nodes, ...: blocks that hold entries
  std::uint64_t depth = 0;         // levels of a tree, global depth of an extendible hash table
  double load_factor = 0;          // entries / entries that fit into the nodes
  std::uint64_t medium_bytes = 0;  // blocks that the index holds in its medium
  std::uint64_t dram_bytes = 0;    // DRAM beside the medium: locks, cached directory, ...
};

// The result of `check()`: violated invariants in words, the first hundred of them. Empty: the structure is sound.
struct check_report {
  // Further ones are not kept.
  static constexpr std::size_t most_violations = 100;

  std::vector<std::string> violations;  // in words, one each
  std::uint64_t entries = 0;            // that the walk has met

  // True: no invariant is violated.
  [[nodiscard]] bool ok() const noexcept { return violations.empty(); }
  // Adds one, up to a limit.
  void add(std::string violation) {
    if (violations.size() < most_violations) violations.push_back(std::move(violation));
  }
};

// An index may also offer `prefetch_find(key)`: it prefetches the first lines that a search for the key reads in the
// medium, waits for DRAM alone, and may be called at any time. Caches search for the key elsewhere in the meantime.
//
// Any operation may be called from any number of threads at a time, except `check` and `stats`. REQUIRES of those: no
// concurrent writer. `I::open(medium, name)` creates the index, or recovers it if the medium holds it already.
template <class I>
concept point_index = requires(I& index, const I& constant, key_type key, value_type value,
                               std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
  { I::layout_name } -> std::convertible_to<std::string_view>;  // "cceh", "fast_fair", ...
  { I::layout_version } -> std::convertible_to<std::uint64_t>;
  { index.insert(key, value) } -> std::same_as<outcome>;  // inserted, exists, full
  { index.update(key, value) } -> std::same_as<outcome>;  // updated, absent, full
  { index.upsert(key, value) } -> std::same_as<outcome>;  // inserted, updated, full
  { index.erase(key) } -> std::same_as<outcome>;          // erased, absent, full
  { index.find(key) } -> std::same_as<std::optional<value_type>>;
  // values[i] := find(keys[i]); the searches overlap, so that their cache misses do. Sizes must be equal.
  { index.find_batch(keys, values) } -> std::same_as<void>;
  { constant.size() } -> std::same_as<std::uint64_t>;  // walks the index
  { constant.stats() } -> std::same_as<index_stats>;   // walks the index
  { constant.check() } -> std::same_as<check_report>;  // walks the index
  // Calls a function with every (key, value), in no particular order. REQUIRES: no concurrent writer.
  constant.for_each([](key_type, value_type) {});
};

// A point index that also gives its entries in ascending order of unsigned keys.
template <class I>
concept ordered_index = point_index<I> && requires(I& index, key_type key, std::span<entry> out) {
  // Fills `out` with the entries whose keys are >= key, ascending; returns how many there were.
  { index.scan(key, out) } -> std::same_as<std::size_t>;
  // Calls a function with every (key, value) of [first, last], ascending; writers may run.
  index.for_each_in(key, key, [](key_type, value_type) {});
};

// How string keys are kept over an index (strings/string_index.hpp).
enum class string_form : std::uint8_t {
  hashes,  // words are hashes of the keys
  trie,    // words are parts of the keys, in their order
  tree     // the keys have a radix tree of their own beside the index, which stays empty
};

// An index asks for a tree of strings with `static constexpr bool has_tree_of_strings = true`.
template <point_index I>
inline constexpr string_form string_form_over = [] {
  if (requires { requires I::has_tree_of_strings; }) return string_form::tree;
  return ordered_index<I> ? string_form::trie : string_form::hashes;
}();

// An ordered index that takes many entries at once, much faster than one at a time if they lie between two neighbours.
//
// `load(ascending)`: strictly ascending keys. Keys that are present keep their values. Returns how many of the entries
// were processed: fewer than given if there is no space for the next one. Other operations may run, loads too. Durable
// on return; a crash leaves a prefix of the entries, each complete, and nothing leaks.
template <class I>
concept loadable_index = ordered_index<I> && requires(I& index, std::span<const entry> ascending) {
  { index.load(ascending) } -> std::same_as<std::size_t>;
};

}  // namespace pmlab::indexes
