// WORT: a path-compressed radix tree whose changes are committed by stores of 8 bytes, after Lee et al., FAST'17
// [WORT].
//
// Use it for ordered data whose inserts should flush one line each and move nothing. `woart` (woart.hpp) is faster and
// smaller on most keys; this one has one kind of node.
//
// Thread safety, progress, durability, layout and invariants: detail/radix/tree.hpp, which has the code.
//
// Nodes have 16 slots, for four bits of a key each: 320 bytes. Header: 15 digits and the depth, in 8 bytes.
//
// Differences from the paper:
//  * The header has the path from the root, where the paper's has the digits below the parent, and the depth. There,
//    a key that leaves the path above a node changes two words: the link to the new parent, and the prefix of the old
//    node. A crash between the two leaves a prefix of which a reader must skip a part, and the next writer must repair
//    it. Here the old node is not written.
//  * Entries are in the slots, where the paper has a leaf for each: an insert flushes one line, not two, and allocates
//    nothing.
//  * A link has the depth of its child: a search compares only the key at its end, and reads one line for each node.
//  * Threads, scans, and deletes that release nodes: the paper has none.
//
// Space: 21 bytes for each key where all keys of a range are present, 90 to 130 for random ones.
#pragma once

#include <pmlab/indexes/detail/radix/node.hpp>
#include <pmlab/indexes/detail/radix/tree.hpp>
#include <pmlab/media/medium.hpp>

#include <cstdint>
#include <string_view>

namespace pmlab::indexes {

// The layout of WORT.
struct wort_layout {
  static constexpr std::string_view layout_name = "wort";
  static constexpr std::uint64_t layout_version = 1;
  // String keys over it are words.
  static constexpr bool has_tree_of_strings = false;
  // The kinds of nodes: one.
  using kinds = detail::radix::kinds<detail::radix::digits<4>, detail::radix::direct_node<detail::radix::digits<4>>>;
};

// Radix tree with nodes of 16 children [WORT]. See the file's prologue for its use and differences from the paper, and
// detail/radix/tree.hpp for its operations. Operations: at most 16 nodes; a scan of m entries O(16 + m).
template <media::medium Medium>
using wort = detail::radix::tree<Medium, wort_layout>;

}  // namespace pmlab::indexes
