// A row of new leaves for a tree whose nodes are all in the medium: filled while it is unreachable, and then linked
// atomically.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <span>

namespace pmlab::indexes::detail {

// One publication allocates the leaves, and has so many further stores, which link them.
template <class Node, std::size_t LinkingStores>
struct leaf_row {
  using leaf_type = Node;
  static constexpr std::size_t most_leaves = media::publication_limit - LinkingStores;

  std::array<Node*, most_leaves> leaves{};
  std::array<key_type, most_leaves> low_keys{};
  std::size_t count = 0;    // leaves
  std::size_t entries = 0;  // in all of them; every leaf but the last one is filled

  [[nodiscard]] Node& last() const noexcept { return *leaves[count - 1]; }
};

// Makes a row of these entries, `in_leaf` of them in each leaf, as part of `change`; of the first of them only, or
// none, if there is no space. fill(leaf, entries) puts them into an empty one. The caller sets the successor of the
// last leaf, and persists all of it.
template <class Row, media::medium Medium, media::publication Publication, class Fill>
[[nodiscard]] Row make_row(Medium& medium, Publication& change, std::span<const entry> ascending, std::size_t in_leaf,
                           Fill&& fill) {
  Row row;
  while (row.entries < ascending.size()) {
    auto* const made = media::create<typename Row::leaf_type>(change);
    if (made == nullptr) break;
    const auto own = ascending.subspan(row.entries, std::min(in_leaf, ascending.size() - row.entries));
    fill(*made, own);
    if (row.count > 0) {
      row.last().sibling.store(medium.locate(made), std::memory_order_relaxed);
      row.last().high_key.store(own.front().key, std::memory_order_relaxed);
    }
    row.low_keys[row.count] = own.front().key;
    row.leaves[row.count++] = made;
    row.entries += own.size();
  }
  return row;
}

}  // namespace pmlab::indexes::detail
