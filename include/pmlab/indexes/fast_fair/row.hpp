// A row of new leaves for a FAST-FAIR tree: filled while it is unreachable, and then linked into the list atomically.
#pragma once

#include <pmlab/indexes/fast_fair/node.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <span>

namespace pmlab::indexes::detail::fast_fair {

// Entries of a leaf that is loaded: six sevenths of its slots, so that a few more fit before it splits.
inline constexpr std::size_t loaded_entries = capacity * 6 / 7;

struct leaf_row {
  // One publication allocates them, and has two further stores, which link them.
  static constexpr std::size_t most_leaves = media::publication_limit - 2;

  std::array<node*, most_leaves> leaves{};
  std::size_t count = 0;    // of leaves
  std::size_t entries = 0;  // in all of them; every leaf but the last one has loaded_entries

  [[nodiscard]] node& last() const noexcept { return *leaves[count - 1]; }
};

// True if a row that begins with `first` may follow this locked leaf, which is about full and has lower keys only.
[[nodiscard]] inline bool row_may_follow(node& leaf, key_type first) noexcept {
  std::size_t entries = 0;
  for (std::size_t i = 0; i < capacity; ++i) {
    if (leaf.is_free(i)) continue;
    if (leaf.key_at(i) >= first) return false;
    ++entries;
  }
  return entries >= loaded_entries;
}

// Those of `ascending`, as many as go into a row, whose keys are below `bound`.
[[nodiscard]] inline std::span<const entry> fit_into_row(std::span<const entry> ascending, key_type bound) noexcept {
  const auto some = ascending.first(std::min(ascending.size(), leaf_row::most_leaves * loaded_entries));
  const auto end = std::partition_point(some.begin(), some.end(), [bound](const entry& e) { return e.key < bound; });
  return some.first(static_cast<std::size_t>(end - some.begin()));
}

// Makes a row of these entries, as part of `change`; of the first of them only, or none, if there is no space. The
// caller sets the successor of the last leaf, and persists all of it.
template <media::medium Medium, media::publication Publication>
[[nodiscard]] leaf_row make_row(Medium& medium, Publication& change, std::span<const entry> ascending) {
  leaf_row row;
  while (row.entries < ascending.size()) {
    node* const made = media::create<node>(change);
    if (made == nullptr) break;
    const auto own = ascending.subspan(row.entries, std::min(loaded_entries, ascending.size() - row.entries));
    for (std::size_t i = 0; i < own.size(); ++i) {
      made->value(i).store(own[i].value, std::memory_order_relaxed);
      made->key(i).store(own[i].key, std::memory_order_relaxed);
    }
    if (row.count > 0) {
      row.last().sibling.store(medium.locate(made), std::memory_order_relaxed);
      row.last().high_key.store(own.front().key, std::memory_order_relaxed);
    }
    row.leaves[row.count++] = made;
    row.entries += own.size();
  }
  return row;
}

}  // namespace pmlab::indexes::detail::fast_fair
