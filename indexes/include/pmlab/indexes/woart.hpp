// WOART: an adaptive radix tree whose changes are committed by stores of 8 bytes, after Lee et al., FAST'17 [WORT]; its
// kinds of nodes are those of ART, Leis et al., ICDE'13 [ART].
//
// Use it for ordered data that must be available as soon as the pool is open, and is read more than it is scanned: a
// search reads one or two lines of each of a few nodes, and most of these stay in the caches.
//
// Thread safety, progress, durability, layout and invariants: detail/radix/tree.hpp, which has the code.
//
// Nodes have 3, 15, 47 or 256 slots, for eight bits of a key each (the root: 256):
//
//     3       a line             slots in any order, searched one by one: each slot's word has its digit
//     15      256 bytes          the same
//     47      1 KB               slots in any order, and a byte for each digit that leads to its slot
//                                (woart/indexed_node.hpp)
//     256     4 KB and a header  a slot for each digit
//
// The paper's nodes of 4, 16 and 48 children: here the header has the place of a slot, so that a node is a line, a line
// of an Optane device, and four of them.
//
// Header: 7 digits and the depth, in 8 bytes. An insert is committed by the word of its slot in all kinds, where the
// paper's nodes of 4 have a sorted array of digits, those of 16 a bitmap, and those of 48 and 256 orders of their own.
//
// The other differences from the paper are those of `wort` (wort.hpp).
//
// Space: 16 bytes for each key where all keys of a range are present; for random ones 25 to 70, as a node that
// needs few more than 47 slots has 256.
#pragma once

#include <pmlab/indexes/detail/radix/node.hpp>
#include <pmlab/indexes/detail/radix/tree.hpp>
#include <pmlab/indexes/woart/indexed_node.hpp>
#include <pmlab/media/medium.hpp>

#include <cstdint>
#include <string_view>

namespace pmlab::indexes {

// The layout of WOART.
struct woart_layout {
  static constexpr std::string_view layout_name = "woart";
  static constexpr std::uint64_t layout_version = 1;
  // String keys over it have nodes like its own.
  static constexpr bool has_tree_of_strings = true;
  using digits = detail::radix::digits<8>;  // digits of a key: bytes
  // The kinds of nodes: four.
  using kinds =
      detail::radix::kinds<digits, detail::radix::searched_node<digits, 3>, detail::radix::searched_node<digits, 15>,
                           detail::woart::indexed_node<digits>, detail::radix::direct_node<digits>>;
};

// Adaptive radix tree with nodes of 3 to 256 children [WORT], [ART]. See the file's prologue for its use and
// differences from the paper, and detail/radix/tree.hpp for its operations. Operations: at most 8 nodes; a scan of m
// entries O(8 + m).
template <media::medium Medium>
using woart = detail::radix::tree<Medium, woart_layout>;

}  // namespace pmlab::indexes
