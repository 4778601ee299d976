// The node of a wB+-tree: one device line, with unsorted entries and a word that sorts them.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/wb_tree/slot_array.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/media/pointer.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace pmlab::indexes::detail::wb_tree {

// The high key of the last node of a level, which has no bound.
inline constexpr std::uint64_t no_bound = std::numeric_limits<std::uint64_t>::max();

// In a leaf, a key and its value; in an inner node, a child and the least key that it may hold.
struct entry_slot {
  std::atomic<std::uint64_t> key{0};
  std::atomic<std::uint64_t> value{0};
};

//   0            8          16        24             32       48       64
//   | slot array | high key | sibling | next retired | slot 0 | slot 1 |      the commit word, and two entries
//   | slot 2 | slot 3 | slot 4 | slot 5 |
//   | slot 6 | slot 7 | slot 8 | slot 9 |
//   | slot 10 | slot 11 | slot 12 | slot 13 |                                 256
//
//   N1  The slots that the slot array names are the entries; their keys ascend in its order. Any other slot is free,
//       whatever it holds.
//   N2  The first entry of an inner node has the node's own low key: 0 on the left edge of the tree. So every key of
//       the node's range has a child.
struct alignas(media::xpline_bytes) node {
  static constexpr std::string_view tree_name = "wB+-tree";

  std::atomic<std::uint64_t> slots{slot_array::empty(0).word()};
  std::atomic<std::uint64_t> high_key{no_bound};  // keys at or above it are in the sibling, if there is one
  std::atomic<media::pointer<node>> sibling{};    // next node of the same level; null: this is the last one
  // Next one of a retired node and of the leftmost leaf: see retired_nodes.
  std::atomic<media::pointer<node>> next_retired{};
  std::array<entry_slot, capacity> entries;

  [[nodiscard]] slot_array array() const noexcept { return slot_array(slots.load(std::memory_order_acquire)); }
  [[nodiscard]] std::uint64_t key_at(std::size_t slot) const noexcept {
    return entries[slot].key.load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t value_at(std::size_t slot) const noexcept {
    return entries[slot].value.load(std::memory_order_acquire);
  }
  [[nodiscard]] media::pointer<node> child_at(std::size_t slot) const noexcept {
    return media::pointer<node>(value_at(slot));
  }

  // True if `key` belongs to a node further right.
  [[nodiscard]] bool is_beyond(std::uint64_t key) const noexcept {
    return key >= high_key.load(std::memory_order_acquire) && sibling.load(std::memory_order_acquire);
  }

  // How many entries of `order` have keys <= key. A search in two steps, of three independent comparisons each: a
  // binary one would wait for a load four times. Without a branch, since none could be predicted.
  [[nodiscard]] std::size_t count_up_to(slot_array order, std::uint64_t key) const noexcept {
    const std::size_t count = order.count();
    const auto is_up_to = [&](std::size_t rank) {
      return static_cast<std::size_t>(rank < count) & static_cast<std::size_t>(key_at(order[rank]) <= key);
    };
    const std::size_t first = 4 * (is_up_to(3) + is_up_to(7) + is_up_to(11));
    return first + is_up_to(first) + is_up_to(first + 1) + is_up_to(first + 2);
  }

  // The slot of `key`.
  [[nodiscard]] std::optional<std::size_t> slot_of(slot_array order, std::uint64_t key) const noexcept {
    const std::size_t count = count_up_to(order, key);
    if (count == 0 || key_at(order[count - 1]) != key) return std::nullopt;
    return order[count - 1];
  }

  // The child of this inner node that `key` is among; null: the node is damaged.
  [[nodiscard]] media::pointer<node> child_of(slot_array order, std::uint64_t key) const noexcept {
    const std::size_t count = count_up_to(order, key);
    return count == 0 ? media::pointer<node>() : child_at(order[count - 1]);
  }

  // ---- node_tree ----

  // True for every node of a level, if `low` is its low key.
  [[nodiscard]] bool ends_above(std::uint64_t low) const noexcept {
    return high_key.load(std::memory_order_acquire) > low || !sibling.load(std::memory_order_acquire);
  }

  // ---- retired_nodes ----

  // A node that is gone is on no level; its other words stay.
  [[nodiscard]] bool is_gone() const noexcept { return array().level() == gone_level; }
  template <media::publication Publication>
  void publish_gone(Publication& change) {
    media::publish_store(change, slots, array().on_level(gone_level).word());  // (D1)
    // (D1) < return: the caller commits it with the unlinking (Q1).
  }
};
static_assert(sizeof(node) == media::xpline_bytes);

// Slots in the line of the slot array: an insert there makes one line durable.
inline constexpr std::size_t slots_beside_array =
    (media::cache_line_bytes - offsetof(node, entries)) / sizeof(entry_slot);
inline constexpr std::size_t entries_per_line = media::cache_line_bytes / sizeof(entry_slot);

// The first slot of a line of a node. Lines are numbered from 0.
[[nodiscard]] constexpr std::size_t first_slot_of(std::size_t line) noexcept {
  return line == 0 ? 0 : entries_per_line * line - slots_beside_array;
}

// Fills the slots of a new node from the third one on, so that those beside the slot array serve its first inserts.
class slot_filler {
 public:
  // `to`: a node without entries on its level, which no other thread can reach.
  slot_filler(node& to, std::uint64_t level) noexcept : to_(to), order_(slot_array::empty(level)) {
    to_.slots.store(order_.word(), std::memory_order_relaxed);
  }

  // Keys ascend; at most `capacity` of them.
  void put(std::uint64_t key, std::uint64_t value) noexcept {
    const std::size_t rank = order_.count();
    const std::size_t slot = (rank + slots_beside_array) % capacity;
    to_.entries[slot].value.store(value, std::memory_order_relaxed);
    to_.entries[slot].key.store(key, std::memory_order_relaxed);
    order_ = order_.with(rank, slot);
    to_.slots.store(order_.word(), std::memory_order_relaxed);
  }

 private:
  node& to_;
  slot_array order_;
};

// Stores an entry into a slot that no slot array names.
inline void fill_free_slot(node& n, std::size_t slot, std::uint64_t key, std::uint64_t value) noexcept {
  n.entries[slot].value.store(value, std::memory_order_release);
  n.entries[slot].key.store(key, std::memory_order_release);
}

// Adds an entry to a locked node that is not full, in front of the one that has `rank` now. Durable on return: one
// flush and one fence in a slot beside the slot array, else two.
template <media::medium Medium>
void insert_into(Medium& medium, node& n, slot_array order, std::size_t rank, std::uint64_t key,
                 std::uint64_t value) noexcept {
  const std::size_t slot = order.first_free();
  fill_free_slot(n, slot, key, value);                                      // (P1)
  if (slot >= slots_beside_array) media::persist(medium, n.entries[slot]);  // (P2)
  const slot_array after = order.with(rank, slot);
  n.slots.store(after.word(), std::memory_order_release);  // (P3) commit
  media::persist(medium, n.slots);                         // (P4)
  // (P1) < (P2) < (P3), or one line: no crash image names a slot without its entry.
  // (P3) < (P4) < unlock: the value that a reader returns is durable.
}

// Removes the entry at `rank` of a locked node. Durable on return; one flush and one fence.
template <media::medium Medium>
void erase_from(Medium& medium, node& n, slot_array order, std::size_t rank) noexcept {
  n.slots.store(order.without(rank).word(), std::memory_order_release);  // (E1) commit
  media::persist(medium, n.slots);                                       // (E2)
  // (E1) < (E2) < unlock: a reader that misses the key answers only when its removal is durable; and the slot is filled
  // again only when no crash image names it.
}

// Copies the entries of `right` into free slots of its left neighbour, where they do not count yet, and returns the
// slot array under which they do: slots beside the array stay free for the next inserts. Both are locked. Durable on
// return.
template <media::medium Medium>
[[nodiscard]] slot_array copy_behind(Medium& medium, node& left, const node& right) noexcept {
  slot_array order = left.array();
  const slot_array from = right.array();
  unsigned lines = 0;  // a bit for each line with a copy
  for (std::size_t rank = 0; rank < from.count(); ++rank) {
    const std::size_t slot = order.last_free();
    fill_free_slot(left, slot, right.key_at(from[rank]), right.value_at(from[rank]));  // (G1)
    order = order.with(order.count(), slot);
    lines |= 1U << (slot + slots_beside_array) / entries_per_line;
  }
  for (; lines != 0; lines &= lines - 1)
    media::flush(medium, left.entries[first_slot_of(static_cast<std::size_t>(std::countr_zero(lines)))]);  // (G2)
  if (from.count() != 0) medium.fence();                                                                   // (G3)
  // (G1) < (G2) < (G3) < every store that follows the return.
  return order;
}

}  // namespace pmlab::indexes::detail::wb_tree
