// Joins two neighbours of a FAST-FAIR tree: selects them, and moves the entries of both into one node.
#pragma once

#include <pmlab/indexes/fast_fair/node.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::fast_fair {

// Entries of two joined neighbours: two slots stay free, so that the next inserts do not split the node again.
// just joined.
inline constexpr std::size_t most_joined = capacity - 2;

// A leaf searches for a neighbour to join with when an erase leaves so many entries, and a multiple of join_step. So at
// most every third erase searches, and two neighbours under one parent keep most_joined + 1 - 2 * (join_step - 1) = 23
// entries: at 11.5 a leaf no more than 2.1 times the leaves of a `load` (24 entries each). Histories that are not
// adversarial stay well below.
inline constexpr std::size_t join_from = 24;
inline constexpr std::size_t join_step = 3;

// Entries in the slots of a node.
[[nodiscard]] inline std::size_t entries_in(node& n) noexcept {
  std::size_t entries = 0;
  for (std::size_t i = 0; i < capacity; ++i) entries += static_cast<std::size_t>(!n.is_free(i));
  return entries;
}

// True if this locked leaf, in which a key was just erased, should search for a neighbour.
[[nodiscard]] inline bool looks_for_a_neighbour(node& leaf) noexcept {
  const std::size_t entries = entries_in(leaf);
  return entries <= join_from && entries % join_step == 0;
}

// The slot after the last entry: it and all that follow are beyond the high key.
[[nodiscard]] inline std::size_t end_of_entries(node& n) noexcept {
  std::size_t end = capacity;
  while (end > 0 && n.is_free(end - 1)) --end;
  return end;
}

// Slots that the entries of `right` need behind those of its left neighbour. In an inner node the separator between the
// two leads to the first child of `right`.
[[nodiscard]] inline std::size_t slots_for(node& right) noexcept {
  return entries_in(right) + static_cast<std::size_t>(!right.is_leaf());
}

// True if these neighbours should be one node.
[[nodiscard]] inline bool should_join(node& left, node& right) noexcept {
  const std::size_t in_left = entries_in(left);
  const std::size_t in_right = entries_in(right);
  const std::size_t most = in_left == 0 || in_right == 0 ? capacity : most_joined;
  return in_left + slots_for(right) <= most;
}

// Writes entries into the slots of a node from `slot` on, in ascending order.
class slot_writer {
 public:
  slot_writer(node& to, std::size_t slot) noexcept : to_(to), slot_(slot) {}

  void put(std::uint64_t key, std::uint64_t value) noexcept {
    to_.value(slot_).store(value, std::memory_order_release);
    to_.key(slot_).store(key, std::memory_order_release);
    ++slot_;
  }
  void put_entries(node& from) noexcept {
    for (std::size_t i = 0; i < capacity; ++i)
      if (!from.is_free(i)) put(from.key_at(i), from.value_at(i));
  }
  // All that follows `left`, its neighbour to the right.
  void put_right(node& left, node& right) noexcept {
    if (!right.is_leaf())
      put(left.high_key.load(std::memory_order_acquire), right.first_child.load(std::memory_order_acquire).word());
    put_entries(right);
  }
  // No slot after these is an entry, with any high key.
  void leave_the_rest_free() noexcept {
    for (; slot_ < capacity; ++slot_) to_.key(slot_).store(greatest_key, std::memory_order_release);
  }

 private:
  node& to_;
  std::size_t slot_;
};

// Copies the entries of `right` behind those of `left`; both are locked, and there is room from `end` on, the end of
// the entries of `left`. They are beyond its high key still, so no reader and no crash sees them before the high key is
// that of `right`. Durable on return.
template <media::medium Medium>
void copy_behind(Medium& medium, node& left, std::size_t end, node& right) noexcept {
  slot_writer writer(left, end);
  writer.put_right(left, right);  // (G1)
  writer.leave_the_rest_free();   // (G2) entries that a split left there would be visible under the new high key
  for (std::size_t line = end / entries_per_line; line < lines_per_node; ++line)
    media::flush(medium, left.lines[line]);  // (G3)
  medium.fence();                            // (G4)
  // (G1), (G2) < (G3) < (G4) < every store that follows the return.
}

// The children of an inner node around one of them.
struct family {
  media::pointer<node> before{};  // the left neighbour's left neighbour
  media::pointer<node> left{};
  media::pointer<node> own{};
  media::pointer<node> right{};
};

// The children of `parent` around the one that has `key`; null: there is none under this parent. REQUIRES: a lock, or
// validation of the result before it is used.
[[nodiscard]] inline family family_of(node& parent, std::uint64_t key) noexcept {
  family result;
  result.own = parent.first_child.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < capacity; ++i) {
    if (parent.is_free(i)) continue;
    const media::pointer<node> child(parent.value_at(i));
    if (parent.key_at(i) > key) {
      result.right = child;
      break;
    }
    result.before = result.left;
    result.left = result.own;
    result.own = child;
  }
  return result;
}

}  // namespace pmlab::indexes::detail::fast_fair
