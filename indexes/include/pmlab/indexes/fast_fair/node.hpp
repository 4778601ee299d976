// The node of a FAST-FAIR tree, and the shifts (FAST) that change it so that every prefix of their stores leaves a
// valid node.
#pragma once

#include <pmlab/indexes/detail/entry_line.hpp>
#include <pmlab/indexes/detail/word_counts.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/media/pointer.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>

namespace pmlab::indexes::detail::fast_fair {

// Not stored in any slot: its entry lives in the header of the last leaf, and as a high key it means "no bound".
inline constexpr std::uint64_t greatest_key = std::numeric_limits<std::uint64_t>::max();

inline constexpr std::size_t node_bytes = 512;
inline constexpr std::size_t lines_per_node = node_bytes / media::cache_line_bytes - 1;
inline constexpr std::size_t capacity = lines_per_node * entries_per_line;
inline constexpr std::uint64_t most_levels = 64;

//   0          8         16      24            32                  40               48             56      64
//   | high key | sibling | level | first child | greatest present? | greatest value | next retired | gone? |
//   64
//   | line 0: slots 0..3 | line 1: slots 4..7 | ... | line 6: slots 24..27 |
//
// Slots, in order of their number:
//   N1  The slots whose keys are below the high key are the first ones, and these keys never decrease.
//   N2  A slot is an entry if its key is below the high key and differs from the next slot's key; every other slot is
//       free: either a hole (equal to the next slot: of equal neighbours the last one holds the value) or beyond the
//       high key (never used, moved to the sibling by a split, or copied from the sibling by a join under way).
// So the state between two stores of a shift, and the state that a crash leaves of it, is a valid node that needs no
// repair.
//
// In a leaf, an entry is a key and its value; in an inner node, a separator and the child whose keys are at or above
// it. `first child` has the keys below the first separator.
struct alignas(media::cache_line_bytes) node {
  static constexpr std::string_view tree_name = "FAST-FAIR tree";

  std::atomic<std::uint64_t> high_key{greatest_key};  // keys at or above it are in the sibling
  std::atomic<media::pointer<node>> sibling{};        // next node of the same level; null: this is the last one
  std::atomic<std::uint64_t> level{0};                // 0: leaf; never changes
  std::atomic<media::pointer<node>> first_child{};
  std::atomic<std::uint64_t> greatest_present{0};  // last leaf: 1 if greatest_key is in the tree
  std::atomic<std::uint64_t> greatest_value{0};
  // Both 0 in nodes of the releases that never retired one.
  std::atomic<media::pointer<node>>
      next_retired{};                  // next one of a retired node and of the leftmost leaf: see retired_nodes
  std::atomic<std::uint64_t> gone{0};  // 1: retired; it never changes again, and no way leads to it
  std::array<entry_line, lines_per_node> lines;

  node() noexcept {
    for (std::size_t i = 0; i < capacity; ++i) {
      key(i).store(greatest_key, std::memory_order_relaxed);
      value(i).store(0, std::memory_order_relaxed);
    }
  }

  [[nodiscard]] std::atomic<std::uint64_t>& key(std::size_t slot) noexcept {
    return lines[slot / entries_per_line].keys[slot % entries_per_line];
  }
  [[nodiscard]] std::atomic<std::uint64_t>& value(std::size_t slot) noexcept {
    return lines[slot / entries_per_line].values[slot % entries_per_line];
  }
  [[nodiscard]] std::uint64_t key_at(std::size_t slot) noexcept { return key(slot).load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t value_at(std::size_t slot) noexcept {
    return value(slot).load(std::memory_order_acquire);
  }
  [[nodiscard]] bool is_leaf() const noexcept { return level.load(std::memory_order_acquire) == 0; }
  [[nodiscard]] bool is_gone() const noexcept { return gone.load(std::memory_order_acquire) != 0; }
  template <media::publication Publication>
  void publish_gone(Publication& change) {
    media::publish_store(change, gone, std::uint64_t{1});  // (D1)
    // (D1) < return: the caller commits it with the unlinking (Q1).
  }

  // The key of the slot after `slot`; past the last one, the high key, which makes an equal slot free.
  [[nodiscard]] std::uint64_t key_after(std::size_t slot) noexcept {
    return slot + 1 < capacity ? key_at(slot + 1) : high_key.load(std::memory_order_acquire);
  }
  [[nodiscard]] bool is_free(std::size_t slot) noexcept {
    const std::uint64_t k = key_at(slot);
    return k >= high_key.load(std::memory_order_acquire) || k == key_after(slot);
  }

  // True if `k` belongs to a node further right.
  [[nodiscard]] bool is_beyond(std::uint64_t k) const noexcept {
    return k >= high_key.load(std::memory_order_acquire) && sibling.load(std::memory_order_acquire);
  }

  // True for every node of a level, if `low` is its low key.
  [[nodiscard]] bool ends_above(std::uint64_t low) const noexcept {
    return high_key.load(std::memory_order_acquire) > low;
  }

  // How many slots have keys <= k, for k < greatest_key. Without a branch: first the lines after the first one that
  // begin at or below k, then the slots of the last of them. All lines are read, and at once, where a binary search
  // would wait for one cache miss after the other; the first one, too, in which the slots may be.
  [[nodiscard]] std::size_t count_up_to(std::uint64_t k) const noexcept {
    static_cast<void>(lines[0].keys[0].load(std::memory_order_acquire));
    std::size_t last = 0;
    for (std::size_t line = 1; line < lines_per_node; ++line)
      last += static_cast<std::size_t>(lines[line].keys[0].load(std::memory_order_acquire) <= k);
    return last * entries_per_line + words_one_by_one::count_up_to(lines[last].keys, k);
  }

  // The slot of the entry with key k < greatest_key.
  [[nodiscard]] std::optional<std::size_t> slot_of(std::uint64_t k) noexcept {
    const std::size_t count = count_up_to(k);
    if (count == 0 || key_at(count - 1) != k) return std::nullopt;
    return count - 1;
  }

  // The child of this inner node whose keys k is among, for k < greatest_key below the high key.
  [[nodiscard]] media::pointer<node> child_of(std::uint64_t k) noexcept {
    const std::size_t count = count_up_to(k);
    return count == 0 ? first_child.load(std::memory_order_acquire) : media::pointer<node>(value_at(count - 1));
  }
};
static_assert(sizeof(node) == node_bytes);
static_assert(offsetof(node, lines) == media::cache_line_bytes);

// The successor of the locked node `n` becomes the successor of `last` when that is linked.
inline void take_place_after(node& last, const node& n) noexcept {
  last.sibling.store(n.sibling.load(std::memory_order_relaxed), std::memory_order_relaxed);
  last.high_key.store(n.high_key.load(std::memory_order_relaxed), std::memory_order_relaxed);
  last.greatest_present.store(n.greatest_present.load(std::memory_order_relaxed), std::memory_order_relaxed);
  last.greatest_value.store(n.greatest_value.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

// Makes the changes of one thread to a locked node durable line by line. Stores within a line become durable in their
// order; before the first store to another line, the previous line is made durable.
template <media::medium Medium>
class line_writer {
 public:
  line_writer(Medium& medium, node& target) noexcept : medium_(medium), node_(target) {}

  // Call it before storing to `slot`.
  void move_to(std::size_t slot) noexcept {
    entry_line& line = node_.lines[slot / entries_per_line];
    if (current_ != &line) finish();
    current_ = &line;
  }

  // Everything stored is durable on return.
  void finish() noexcept {
    if (current_ != nullptr) media::persist(medium_, *current_);  // (L1)
    current_ = nullptr;
  }

  // (L1) < every store that follows a `move_to` to another line, or a `finish`.

 private:
  Medium& medium_;
  node& node_;
  entry_line* current_ = nullptr;
};

// Lines that hold the slots from `first` to `last`.
[[nodiscard]] constexpr std::size_t lines_of(std::size_t first, std::size_t last) noexcept {
  return last / entries_per_line - first / entries_per_line + 1;
}

// Slots [at, free) move one to the right, the last one first, and (k, v) is stored in slot `at`.
template <media::medium Medium>
void insert_shifting_right(Medium& medium, node& n, std::size_t at, std::size_t free, std::uint64_t k,
                           std::uint64_t v) noexcept {
  line_writer writer(medium, n);
  for (std::size_t slot = free; slot > at; --slot) {
    writer.move_to(slot);
    // (F1) < (F2): `slot` is free, so its value means nothing until its key is stored; then it holds the same as its
    // left neighbour, which thereby becomes free.
    n.value(slot).store(n.value_at(slot - 1), std::memory_order_release);  // (F1)
    n.key(slot).store(n.key_at(slot - 1), std::memory_order_release);      // (F2)
  }
  writer.move_to(at);
  // (I1) < (I2): as (F1) < (F2); the key makes the free slot an entry.
  n.value(at).store(v, std::memory_order_release);  // (I1)
  n.key(at).store(k, std::memory_order_release);    // (I2) commit
  writer.finish();
}

// `hole` equals its right neighbour. Slots (hole, at) move one to the left, the first one first, and (k, v) is stored
// in slot at - 1.
template <media::medium Medium>
void insert_shifting_left(Medium& medium, node& n, std::size_t hole, std::size_t at, std::uint64_t k,
                          std::uint64_t v) noexcept {
  line_writer writer(medium, n);
  writer.move_to(hole);
  n.value(hole).store(n.value_at(hole + 1), std::memory_order_release);  // (B1)
  for (std::size_t slot = hole + 1; slot + 1 < at; ++slot) {
    writer.move_to(slot);
    // (B1) < (B2) < (B3): the entry of `slot` has a complete copy on its left, so its key may be overwritten: the slot
    // is then a hole before its right neighbour, and its value means nothing.
    n.key(slot).store(n.key_at(slot + 1), std::memory_order_release);      // (B2)
    n.value(slot).store(n.value_at(slot + 1), std::memory_order_release);  // (B3)
  }
  // (B3) < (B4) < (B5) < (B6): the last slot's entry has its copy on the left; it becomes a free slot, then ours.
  writer.move_to(at - 1);
  n.key(at - 1).store(n.key_after(at - 1), std::memory_order_release);  // (B4)
  n.value(at - 1).store(v, std::memory_order_release);                  // (B5)
  n.key(at - 1).store(k, std::memory_order_release);                    // (B6) commit
  writer.finish();
}

// The first free slot from `at` on; capacity: there is none.
[[nodiscard]] inline std::size_t free_slot_from(node& n, std::size_t at) noexcept {
  const std::uint64_t high = n.high_key.load(std::memory_order_acquire);
  std::uint64_t next = at < capacity ? n.key_at(at) : high;
  for (std::size_t slot = at; slot < capacity; ++slot) {
    const std::uint64_t k = next;
    next = n.key_after(slot);
    if (k >= high || k == next) return slot;
  }
  return capacity;
}

// The last free slot in [least, at); capacity: there is none. The slot before `at` is an entry, and none before it is
// beyond the high key.
[[nodiscard]] inline std::size_t free_slot_before(node& n, std::size_t at, std::size_t least) noexcept {
  if (at == 0) return capacity;
  std::uint64_t next = n.key_at(at - 1);
  for (std::size_t slot = at - 1; slot > least; --slot) {
    const std::uint64_t k = n.key_at(slot - 1);
    if (k == next) return slot - 1;
    next = k;
  }
  return capacity;
}

// Adds (k, v) to a locked node in which k is not; k < greatest_key, below the high key. False: every slot is an entry.
// Flushes: one for each line from the insertion point to the nearest free slot, on the side where these are fewer.
template <media::medium Medium>
bool insert_into(Medium& medium, node& n, std::uint64_t k, std::uint64_t v) noexcept {
  const std::size_t at = n.count_up_to(k);
  const std::size_t right = free_slot_from(n, at);
  const std::size_t right_lines = right < capacity ? lines_of(at, right) : lines_per_node + 1;
  // On the left, only slots of the `right_lines - 1` lines up to that of slot at - 1 are of use.
  const std::size_t lines_before = (at + entries_per_line - 1) / entries_per_line;
  const std::size_t least = lines_before >= right_lines ? (lines_before - right_lines + 1) * entries_per_line : 0;
  const std::size_t left = right_lines == 1 ? capacity : free_slot_before(n, at, least);
  if (left < capacity)
    insert_shifting_left(medium, n, left, at, k, v);
  else if (right < capacity)
    insert_shifting_right(medium, n, at, right, k, v);
  else
    return false;
  return true;
}

// Removes the entry in `slot` of a locked node: one store and one flush, unless holes with the same key precede it.
template <media::medium Medium>
void erase_from(Medium& medium, node& n, std::size_t slot) noexcept {
  const std::uint64_t k = n.key_at(slot);
  std::size_t first = slot;
  while (first > 0 && n.key_at(first - 1) == k) --first;
  line_writer writer(medium, n);
  // (E1) < (E2): when the last of the equal slots is erased, the one before it holds the value; so the key is present,
  // with its value, until the first of them is erased.
  for (std::size_t hole = first; hole < slot; ++hole) {
    writer.move_to(hole);
    n.value(hole).store(n.value_at(slot), std::memory_order_release);  // (E1)
  }
  const std::uint64_t next_key = n.key_after(slot);
  for (std::size_t copy = slot + 1; copy > first; --copy) {
    writer.move_to(copy - 1);
    n.key(copy - 1).store(next_key, std::memory_order_release);  // (E2) the last one commits
  }
  writer.finish();
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

}  // namespace pmlab::indexes::detail::fast_fair
