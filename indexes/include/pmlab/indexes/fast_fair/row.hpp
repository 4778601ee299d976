// A row of new leaves for a FAST-FAIR tree: filled while it is unreachable, and then linked into the list atomically.
#pragma once

#include <pmlab/indexes/detail/leaf_row.hpp>
#include <pmlab/indexes/fast_fair/node.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstddef>
#include <span>

namespace pmlab::indexes::detail::fast_fair {

// Entries of a leaf that is loaded: six sevenths of its slots, so that a few more fit before it splits.
inline constexpr std::size_t loaded_entries = capacity * 6 / 7;

// Two stores of the publication link it: the sibling and the high key of the leaf before it.
using leaf_row = detail::leaf_row<node, 2>;

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

// As detail::make_row.
template <media::medium Medium, media::publication Publication>
[[nodiscard]] leaf_row make_row(Medium& medium, Publication& change, std::span<const entry> ascending) {
  return detail::make_row<leaf_row>(medium, change, ascending, loaded_entries,
                                    [](node& leaf, std::span<const entry> entries) {
                                      for (std::size_t i = 0; i < entries.size(); ++i) {
                                        leaf.value(i).store(entries[i].value, std::memory_order_relaxed);
                                        leaf.key(i).store(entries[i].key, std::memory_order_relaxed);
                                      }
                                    });
}

}  // namespace pmlab::indexes::detail::fast_fair
