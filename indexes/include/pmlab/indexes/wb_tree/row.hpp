// A row of new leaves for a wB+-tree: filled while it is unreachable, and then linked atomically.
#pragma once

#include <pmlab/indexes/detail/leaf_row.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/wb_tree/node.hpp>
#include <pmlab/media/medium.hpp>

#include <cstddef>
#include <span>

namespace pmlab::indexes::detail::wb_tree {

// Entries of a leaf that is loaded: six sevenths of its slots, so that two more fit before it splits. They are not
// those beside the slot array.
inline constexpr std::size_t loaded_entries = capacity - slots_beside_array;

// Three stores of the publication link it: the sibling and the high key of the leaf before it, and the parent's slots.
using leaf_row = detail::leaf_row<node, 3>;

// True if a row that begins with `first` may follow this locked leaf, which is about full and has lower keys only.
[[nodiscard]] inline bool row_may_follow(const node& leaf, key_type first) noexcept {
  const slot_array order = leaf.array();
  return order.count() >= loaded_entries && leaf.key_at(order[order.count() - 1]) < first;
}

// As detail::make_row.
template <media::medium Medium, media::publication Publication>
[[nodiscard]] leaf_row make_row(Medium& medium, Publication& change, std::span<const entry> ascending) {
  return detail::make_row<leaf_row>(medium, change, ascending, loaded_entries,
                                    [](node& leaf, std::span<const entry> entries) {
                                      slot_filler filler(leaf, 0);
                                      for (const entry& e : entries) filler.put(e.key, e.value);
                                    });
}

}  // namespace pmlab::indexes::detail::wb_tree
