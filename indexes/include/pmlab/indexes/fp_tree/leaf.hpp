// The medium part of an FP-tree: leaves, and the groups in which they are allocated.
#pragma once

#include <pmlab/indexes/detail/leaf_group.hpp>
#include <pmlab/indexes/detail/slot_bits.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/media/pointer.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::fp_tree {

inline constexpr std::size_t leaf_bytes = 512;
inline constexpr std::size_t capacity = 31;

// One bit for each slot of a leaf.
using slot_set = std::uint32_t;
inline constexpr slot_set all_slots = (slot_set{1} << capacity) - 1;

struct slot {
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint64_t> value;
};

//   0        8      16       32       48       64              128                  448             512
//   | bitmap | next | slot 0 | slot 1 | slot 2 | slots 3 .. 6  | ... slots 23 .. 26 | slots 27 .. 30 |
//
// The word of the bitmap is one bit for each slot, and a seal above them:
//
//   63             32 31       30              0
//   | check          | sealed | bits of slots  |
//
//   L1  A slot is an entry if its bit in the bitmap is set. Slots are in no order; no slot lies in two lines. No two
//       entries of a leaf have the same key. An insert may move entries from the bitmap's line to others: the store of
//       the bitmap that sets their new bits clears the old ones, so that no crash image has one twice, or lacks it.
//   L2  The leaves are a list by `next`, in ascending order of their keys.
//   L3  After a crash a leaf may have entries that the next one has, too: those that a split moved there, or a join
//       from there.
//   L4  The seal is a checksum of the leaf's place, its bits and its link: an overwritten bitmap or link is detected,
//       and a lost link can be found again by its seal. It costs no flush: all three are in one line, or are the same
//       word. The link is stored first: after a crash the seal may be that of the previous link, which led to the leaf
//       behind those that were linked, or to the first of those that were unlinked, or to the one that was joined with
//       this or moved elsewhere. Trees of earlier releases have no seals (see `leaf_group::check`), and get none.
struct alignas(media::xpline_bytes) leaf {
  std::atomic<std::uint64_t> bitmap;       // with the seal
  std::atomic<media::pointer<leaf>> next;  // null: this is the last one
  std::array<slot, capacity> slots;
};
static_assert(sizeof(leaf) == leaf_bytes);

[[nodiscard]] constexpr slot_set slots_in(std::uint64_t bitmap) noexcept {
  return static_cast<slot_set>(bitmap) & all_slots;
}
inline constexpr std::uint64_t sealed_bit = std::uint64_t{1} << capacity;

// The bitmap's word of the leaf at `place` with these slots and this link (L4).
[[nodiscard]] constexpr std::uint64_t sealed(media::pointer<leaf> place, slot_set used,
                                             media::pointer<leaf> next) noexcept {
  constexpr std::uint64_t check_bits = ~std::uint64_t{0} << 32;
  return (check_of(place.word(), next.word(), used) & check_bits) | sealed_bit | used;
}
static_assert(offsetof(leaf, slots) % sizeof(slot) == 0 && media::cache_line_bytes % sizeof(slot) == 0);

// Entries of these slots share a line with the bitmap.
inline constexpr std::size_t slots_beside_bitmap = (media::cache_line_bytes - offsetof(leaf, slots)) / sizeof(slot);

inline constexpr std::size_t lines_per_leaf = leaf_bytes / media::cache_line_bytes;

// The line of a leaf that slot `i` lies in.
[[nodiscard]] constexpr std::size_t line_of(std::size_t i) noexcept {
  return (offsetof(leaf, slots) + i * sizeof(slot)) / media::cache_line_bytes;
}
[[nodiscard]] constexpr slot_set slots_of_line(std::size_t line) noexcept {
  constexpr std::size_t per_line = media::cache_line_bytes / sizeof(slot);
  constexpr slot_set in_one = (slot_set{1} << per_line) - 1;
  constexpr std::size_t missing = per_line - slots_beside_bitmap;  // the bitmap and the link are there
  return line == 0 ? in_one >> missing : in_one << (line * per_line - missing);
}
static_assert(slots_of_line(0) == 0x7 && slots_of_line(1) == 0x78 && slots_of_line(lines_per_leaf - 1) == 0x78000000);

// Leaf 0 of the oldest group is the leftmost leaf of the tree, always. Groups of a tree without seals (L4) have no
// checksums.
using leaf_group = detail::leaf_group<leaf>;
using group_link = detail::group_link<leaf>;

// As many as a page has descriptors (fp_tree_descriptor.hpp). The oldest group is small, for trees that stay small.
inline constexpr std::size_t leaves_per_group = 56;
inline constexpr std::size_t leaves_of_oldest_group = 4;

[[nodiscard]] constexpr std::size_t leaves_in(bool oldest) noexcept {
  return oldest ? leaves_of_oldest_group : leaves_per_group;
}
[[nodiscard]] constexpr std::size_t group_bytes(bool oldest) noexcept {
  return sizeof(leaf_group) + leaves_in(oldest) * sizeof(leaf);
}

}  // namespace pmlab::indexes::detail::fp_tree
