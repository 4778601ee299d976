// The nodes of a radix tree.
//
//   node: | path, depth | gone | slot | slot | ...          slot: | word | value |
//
// A slot is 16 bytes at a multiple of 16: both of its words are in one line.
//
// Invariants:
//   X1  All keys below a node begin with its path, and its depth is greater than its parent's.
//   X2  A node has at most one child for each digit: an entry, or a link to a node.
#pragma once

#include <pmlab/indexes/detail/radix/node_kinds.hpp>
#include <pmlab/indexes/detail/radix/word.hpp>
#include <pmlab/indexes/index.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pmlab::indexes::detail::radix {

// The alignment of a node. Small ones fill whole lines, as the media expect of small aligned blocks; a large one would
// waste most of a line for its header.
[[nodiscard]] constexpr std::size_t node_alignment(std::size_t slots) noexcept { return slots <= 64 ? 64 : 16; }

// An entry or a link; see slot_word.
struct alignas(2 * sizeof(std::uint64_t)) slot {
  std::atomic<std::uint64_t> word{0};
  std::atomic<std::uint64_t> value{0};  // value of an entry

  [[nodiscard]] slot_word load() const noexcept { return slot_word(word.load(std::memory_order_acquire)); }
};

// The header of every node.
//
// Path: the digits on the way from the root; their number is the node's depth. The paper's header has the digits below
// the parent alone. A path from the root does not change when a parent is inserted above, or is removed.
struct alignas(slot) header {
  std::atomic<std::uint64_t> path_and_depth{0};
  // 1: unlinked, in the limbo, and not changed any more.
  std::atomic<std::uint64_t> gone{0};

  // `path`: a key with these digits first; the others are zero.
  void set_path(std::uint64_t path, unsigned depth) noexcept {
    path_and_depth.store(path | depth, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t path() const noexcept { return path_and_depth.load(std::memory_order_acquire) & ~depths; }
  [[nodiscard]] unsigned depth() const noexcept {
    return static_cast<unsigned>(path_and_depth.load(std::memory_order_acquire) & depths);
  }
  // True: the depth is this one, and the path begins with so many digits of `start`, whose others are zero. `path` gets
  // the path of such a header.
  template <class Digits>
  [[nodiscard]] bool is_of(std::uint64_t start, unsigned count, unsigned depth, std::uint64_t& path) const noexcept {
    const std::uint64_t both = path_and_depth.load(std::memory_order_acquire);
    path = both & ~depths;
    return (both & depths) == depth && (path & Digits::mask_before(count)) == start;
  }
  [[nodiscard]] bool is_gone() const noexcept { return gone.load(std::memory_order_acquire) != 0; }

 private:
  static constexpr std::uint64_t depths = 15;
};

// A slot, and its word when it was found: a small node uses a slot for any digit, so it may stand for another one by
// the time it is read again.
struct found_slot {
  slot* at = nullptr;  // nullptr: no slot has the digit, and `word` is empty
  slot_word word{0};
};

// A place for a new entry in a node.
struct place {
  slot* to = nullptr;                           // empty; nullptr: the node is full
  std::atomic<std::uint64_t>* index = nullptr;  // a word that leads to the slot, if there is one,
  std::uint64_t index_value = 0;                // and its value when it does
};

// A child, and the digit that it stands for.
struct child {
  std::size_t digit;
  slot_word word;
  value_type value;  // value of an entry
};

// Some children of a node, in ascending order of digits.
class children {
 public:
  static constexpr std::size_t most = 48;

  children() noexcept {}  // without clearing the list
  // Empties it. `wanted`: more are not needed.
  void clear(std::size_t wanted = most) noexcept {
    count_ = 0;
    wanted_ = std::min(wanted, most);
  }
  [[nodiscard]] bool is_full() const noexcept { return count_ >= wanted_; }
  [[nodiscard]] std::span<const child> all() const noexcept { return {list_.data(), count_}; }
  [[nodiscard]] bool has(std::size_t digit) const noexcept {
    return std::any_of(list_.begin(), list_.begin() + static_cast<std::ptrdiff_t>(count_),
                       [digit](const child& c) { return c.digit == digit; });
  }

  // REQUIRES: not full; its digit is above the others, or its word is empty, and then it is not added. Without a
  // branch, since of a node with a slot for each digit no branch predictor knows which are empty.
  void append_unless_empty(const child& c) noexcept {
    list_[count_] = c;
    count_ += static_cast<std::size_t>(!c.word.is_empty());
  }
  // Where its digit belongs. REQUIRES: not full.
  void insert(const child& c) noexcept {
    std::size_t at = count_++;
    for (; at > 0 && list_[at - 1].digit > c.digit; --at) list_[at] = list_[at - 1];
    list_[at] = c;
  }

 private:
  std::array<child, most> list_;
  std::size_t count_ = 0;
  std::size_t wanted_ = most;
};

// Each kind of node has these operations, for writers with its lock held and for readers that validate their results:
//
//   of_digit(digit, depth, visit)   the slot with the child of the digit, or an empty one, or none. `visit(object)` is
//                                   called before something is read.
//   first_read(digit, visit)        calls visit(object) for what `of_digit` reads at first: for a prefetch.
//   free_place(digit, depth, clear) for a digit without a child. `clear(slot)` makes an invisible slot empty, durably.
//   has_child(slot number, depth)   false: the slot is empty, or invisible.
//   collect(first, depth, found, visit)   adds the children with digits from `first` on, in ascending order, until
//                                   `found` is full. Returns the digit at which to continue.

// A slot for each digit.
template <class Digits>
struct alignas(node_alignment(Digits::values)) direct_node : header {
  static constexpr std::size_t capacity = Digits::values;
  static constexpr bool has_slot_for_each_digit = true;
  std::array<slot, capacity> slots;

  template <class Visit>
  void first_read(std::size_t digit, Visit&& visit) const noexcept {
    visit(slots[digit]);
  }

  template <class Visit>
  [[nodiscard]] found_slot of_digit(std::size_t digit, unsigned /*depth*/, Visit&& visit) noexcept {
    visit(slots[digit]);
    return {&slots[digit], slots[digit].load()};
  }
  template <class Clear>
  [[nodiscard]] place free_place(std::size_t digit, unsigned /*depth*/, Clear&& /*clear*/) noexcept {
    return {&slots[digit]};
  }
  [[nodiscard]] bool has_child(std::size_t i, unsigned /*depth*/) const noexcept { return !slots[i].load().is_empty(); }
  template <class Visit>
  std::size_t collect(std::size_t first, unsigned /*depth*/, children& found, Visit&& visit) const noexcept {
    for (; first < capacity && !found.is_full(); ++first) {
      visit(slots[first]);
      found.append_unless_empty({first, slots[first].load(), slots[first].value.load(std::memory_order_acquire)});
    }
    return first;
  }
};

// A few slots in any order.
template <class Digits, std::size_t Count>
struct alignas(node_alignment(Count)) searched_node : header {
  static constexpr std::size_t capacity = Count;
  static constexpr bool has_slot_for_each_digit = false;
  std::array<slot, capacity> slots;

  template <class Visit>
  void first_read(std::size_t /*digit*/, Visit&& visit) const noexcept {
    visit(slots);
  }

  template <class Visit>
  [[nodiscard]] found_slot of_digit(std::size_t digit, unsigned depth, Visit&& visit) noexcept {
    for (slot& s : slots) {
      visit(s);
      const slot_word word = s.load();
      if (!word.is_empty() && word.template digit<Digits>(depth) == digit) return {&s, word};
    }
    return {};
  }
  template <class Clear>
  [[nodiscard]] place free_place(std::size_t /*digit*/, unsigned /*depth*/, Clear&& /*clear*/) noexcept {
    for (slot& s : slots)
      if (s.load().is_empty()) return {&s};
    return {};
  }
  [[nodiscard]] bool has_child(std::size_t i, unsigned /*depth*/) const noexcept { return !slots[i].load().is_empty(); }
  template <class Visit>
  std::size_t collect(std::size_t first, unsigned depth, children& found, Visit&& visit) const noexcept {
    visit(slots);
    static_assert(capacity <= children::most);
    for (const slot& s : slots) {
      const slot_word word = s.load();
      if (!word.is_empty() && word.template digit<Digits>(depth) >= first)
        found.insert({word.template digit<Digits>(depth), word, s.value.load(std::memory_order_acquire)});
    }
    return Digits::values;
  }
};

// The kinds of nodes of a tree over keys of 8 bytes.
template <class Digits, class... Node>
struct kinds : node_kinds<header, Node...> {
  using digits = Digits;
};

}  // namespace pmlab::indexes::detail::radix
