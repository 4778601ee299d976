// What an FP-tree keeps in its medium: leaves, and the groups in which they are allocated.
#pragma once

#include <pmlab/media/lines.hpp>
#include <pmlab/media/pointer.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::fp_tree {

inline constexpr std::size_t leaf_bytes = 512;
inline constexpr std::size_t capacity = 31;

// One bit for each slot of a leaf.
using slot_set = std::uint32_t;
inline constexpr slot_set all_slots = (slot_set{1} << capacity) - 1;

// Calls function(slot) for every member of `set`, ascending.
template <class Function>
void for_each_slot(slot_set set, Function&& function) {
  for (; set != 0; set &= set - 1) function(static_cast<std::size_t>(std::countr_zero(set)));
}

struct slot {
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint64_t> value;
};

//   0        8      16       32       48       64              128                  448             512
//   | bitmap | next | slot 0 | slot 1 | slot 2 | slots 3 .. 6  | ... slots 23 .. 26 | slots 27 .. 30 |
//
//   L1  A slot is an entry if its bit in the bitmap is set. Slots are in no order; no slot lies in two lines.
//   L2  The leaves are a list by `next`, in ascending order of their keys.
//   L3  After a crash a leaf may still have entries that the next one has, too: those that a split moved there.
struct alignas(media::xpline_bytes) leaf {
  std::atomic<std::uint64_t> bitmap;
  std::atomic<media::pointer<leaf>> next;  // null: this is the last one
  std::array<slot, capacity> slots;
};
static_assert(sizeof(leaf) == leaf_bytes);
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
  constexpr std::size_t missing = per_line - slots_beside_bitmap;  // the bitmap and the link stand there
  return line == 0 ? in_one >> missing : in_one << (line * per_line - missing);
}
static_assert(slots_of_line(0) == 0x7 && slots_of_line(1) == 0x78 && slots_of_line(lines_per_leaf - 1) == 0x78000000);

//   0      8          256      768
//   | next | reserved | leaf 0 | leaf 1 | ...
//
//   G1  Every leaf of the tree lies in a group of the list that begins at the root. The last group of that list is the
//       oldest and smallest; its leaf 0 is the leftmost leaf of the tree, always.
struct alignas(media::xpline_bytes) leaf_group {
  std::atomic<media::pointer<leaf_group>> next;
  std::array<std::byte, media::xpline_bytes - sizeof(next)> reserved;

  [[nodiscard]] leaf* leaves() noexcept { return reinterpret_cast<leaf*>(this + 1); }
};
static_assert(sizeof(leaf_group) == media::xpline_bytes);

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
