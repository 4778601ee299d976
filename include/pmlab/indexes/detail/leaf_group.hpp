// Groups of leaves: the blocks in which a tree allocates its leaves in the medium, a list that begins at the root.
#pragma once

#include <pmlab/base/hash.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/media/pointer.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail {

// 64 bits that differ if any of the words does, mostly.
[[nodiscard]] constexpr std::uint64_t check_of(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
  constexpr std::uint64_t odd_a = golden_ratio;
  constexpr std::uint64_t odd_b = 0xc2b2ae3d27d4eb4fU;
  constexpr std::uint64_t odd_c = 0x165667b19e3779f9U;
  std::uint64_t mixed = a * odd_a + b * odd_b + c * odd_c;
  mixed = (mixed ^ mixed >> 32) * odd_b;
  return (mixed ^ mixed >> 29) * odd_a;
}

//   0      8       16         128          136           144        256
//   | next | check | reserved | next again | check again | reserved | leaf 0, leaf 1, ... |
//
//   G1  Every leaf of the tree lies in a group of the list that begins at the root. The last group of that list is the
//       oldest and smallest.
//   G2  The link is stored in two lines, each time with a checksum of the group's place and of it: if one line is
//       overwritten that is detected, and the other one is used.
template <class Leaf>
struct alignas(media::xpline_bytes) leaf_group {
  std::atomic<media::pointer<leaf_group>> next;
  std::atomic<std::uint64_t> check;
  std::array<std::byte, 2 * media::cache_line_bytes - 2 * sizeof(std::uint64_t)> reserved;
  std::atomic<media::pointer<leaf_group>> next_again;
  std::atomic<std::uint64_t> check_again;
  std::array<std::byte, 2 * media::cache_line_bytes - 2 * sizeof(std::uint64_t)> reserved_again;

  [[nodiscard]] Leaf* leaves() noexcept {
    static_assert(sizeof(leaf_group) == media::xpline_bytes);
    return reinterpret_cast<Leaf*>(this + 1);
  }
};

template <class Leaf>
[[nodiscard]] constexpr std::uint64_t check_of_link(media::pointer<leaf_group<Leaf>> place,
                                                    media::pointer<leaf_group<Leaf>> next) noexcept {
  constexpr std::uint64_t groups = 0x70756f7267666165U;  // a check of nothing else
  return check_of(place.word(), next.word(), groups);
}

// A group's link, as far as its checksums are valid.
template <class Leaf>
struct group_link {
  using place = media::pointer<leaf_group<Leaf>>;

  group_link(const leaf_group<Leaf>& g, place at) noexcept : next(g.next.load(std::memory_order_acquire)) {
    const place again = g.next_again.load(std::memory_order_acquire);
    first_holds = g.check.load(std::memory_order_acquire) == check_of_link(at, next);
    second_holds = g.check_again.load(std::memory_order_acquire) == check_of_link(at, again);
    is_whole = first_holds && second_holds && next == again;
    if (!first_holds && second_holds) next = again;
  }
  [[nodiscard]] bool has_check() const noexcept { return first_holds || second_holds; }

  place next;
  bool first_holds;
  bool second_holds;
  bool is_whole;
};

}  // namespace pmlab::indexes::detail
