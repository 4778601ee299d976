// A row of new leaves for a wB+-tree: filled while it is unreachable, and then linked atomically.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/wb_tree/node.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <span>

namespace pmlab::indexes::detail::wb_tree {

// Entries of a leaf that is loaded: six sevenths of its slots, so that two more fit before it splits. They are not
// those beside the slot array.
inline constexpr std::size_t loaded_entries = capacity - slots_beside_array;

struct leaf_row {
  // One publication allocates them, and has three further stores, which link them.
  static constexpr std::size_t most_leaves = media::publication_limit - 3;

  std::array<node*, most_leaves> leaves{};
  std::array<key_type, most_leaves> low_keys{};
  std::size_t count = 0;    // of leaves
  std::size_t entries = 0;  // in all of them; every leaf but the last one has loaded_entries

  [[nodiscard]] node& last() const noexcept { return *leaves[count - 1]; }
};

// True if a row that begins with `first` may follow this locked leaf, which is about full and has lower keys only.
[[nodiscard]] inline bool row_may_follow(const node& leaf, key_type first) noexcept {
  const slot_array order = leaf.array();
  return order.count() >= loaded_entries && leaf.key_at(order[order.count() - 1]) < first;
}

// Those of `ascending`, as many as go into `leaves` leaves of a row, that belong before `next`; null: all of them do.
[[nodiscard]] inline std::span<const entry> fit_into_row(std::span<const entry> ascending, media::pointer<node> next,
                                                         key_type bound, std::size_t leaves) noexcept {
  const std::size_t most = std::min(leaves, leaf_row::most_leaves) * loaded_entries;
  const auto some = ascending.first(std::min(ascending.size(), most));
  if (!next) return some;
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
    slot_filler filler(*made, 0);
    for (const entry& e : own) filler.put(e.key, e.value);
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

}  // namespace pmlab::indexes::detail::wb_tree
