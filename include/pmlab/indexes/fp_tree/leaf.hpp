// The medium part of an FP-tree: leaves, and the groups in which they are allocated.
#pragma once

#include <pmlab/base/hash.hpp>
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
// The word of the bitmap is one bit for each slot, and a seal above them:
//
//   63             32 31       30              0
//   | check          | sealed | bits of slots  |
//
//   L1  A slot is an entry if its bit in the bitmap is set. Slots are in no order; no slot lies in two lines.
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

// 64 bits that differ if any of the words does, mostly.
[[nodiscard]] constexpr std::uint64_t check_of(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
  constexpr std::uint64_t odd_a = golden_ratio;
  constexpr std::uint64_t odd_b = 0xc2b2ae3d27d4eb4fU;
  constexpr std::uint64_t odd_c = 0x165667b19e3779f9U;
  std::uint64_t mixed = a * odd_a + b * odd_b + c * odd_c;
  mixed = (mixed ^ mixed >> 32) * odd_b;
  return (mixed ^ mixed >> 29) * odd_a;
}

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

//   0      8       16         128         136           144        256      768
//   | next | check | reserved | next again | check again | reserved | leaf 0 | leaf 1 | ...
//
//   G1  Every leaf of the tree lies in a group of the list that begins at the root. The last group of that list is the
//       oldest and smallest; its leaf 0 is the leftmost leaf of the tree, always.
//   G2  The link is stored in two lines, each time with a checksum of the group's place and of it: if one line is
//       overwritten that is detected, and the other one is used. Groups of a tree without seals (L4) have no checksums.
struct alignas(media::xpline_bytes) leaf_group {
  std::atomic<media::pointer<leaf_group>> next;
  std::atomic<std::uint64_t> check;
  std::array<std::byte, 112> reserved;
  std::atomic<media::pointer<leaf_group>> next_again;
  std::atomic<std::uint64_t> check_again;
  std::array<std::byte, 112> reserved_again;

  [[nodiscard]] leaf* leaves() noexcept { return reinterpret_cast<leaf*>(this + 1); }
};
static_assert(sizeof(leaf_group) == media::xpline_bytes);
static_assert(offsetof(leaf_group, next_again) == 2 * media::cache_line_bytes);

[[nodiscard]] constexpr std::uint64_t check_of_link(media::pointer<leaf_group> place,
                                                    media::pointer<leaf_group> next) noexcept {
  constexpr std::uint64_t groups = 0x70756f7267666165U;  // a check of nothing else
  return check_of(place.word(), next.word(), groups);
}

// A group's link, as far as its checksums are valid.
struct group_link {
  group_link(const leaf_group& g, media::pointer<leaf_group> place) noexcept
      : next(g.next.load(std::memory_order_acquire)) {
    const media::pointer<leaf_group> again = g.next_again.load(std::memory_order_acquire);
    first_holds = g.check.load(std::memory_order_acquire) == check_of_link(place, next);
    second_holds = g.check_again.load(std::memory_order_acquire) == check_of_link(place, again);
    is_whole = first_holds && second_holds && next == again;
    if (!first_holds && second_holds) next = again;
  }
  [[nodiscard]] bool has_check() const noexcept { return first_holds || second_holds; }

  media::pointer<leaf_group> next;
  bool first_holds;
  bool second_holds;
  bool is_whole;
};

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
