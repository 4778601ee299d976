// The nodes of a radix tree of strings.
//
//   node: | depth, gone | bytes before | slot | slot | ...                  (slot.hpp)
//
//     6      64 bytes     slots in any order, searched one by one
//     14     128 bytes    the same: ten digits, and some
//     45     640 bytes    slots in any order, and a byte for each digit that leads to its slot
//     257    2 KB         a slot for each digit
#pragma once

#include <pmlab/indexes/detail/radix/node_kinds.hpp>
#include <pmlab/strings/detail/radix/slot.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace pmlab::strings::detail::radix {

using slot = std::atomic<std::uint64_t>;

[[nodiscard]] inline slot_word load(const slot& s) noexcept { return slot_word(s.load(std::memory_order_acquire)); }

// The header of every node.
struct header {
  static constexpr std::size_t bytes_before = sizeof(std::uint64_t);

  std::atomic<std::uint64_t> depth_and_gone{0};
  // The last 8 bytes of the path, or all of a shorter one. Neither they nor the depth ever change.
  std::atomic<std::uint64_t> before{0};

  // `path`: a key that begins with the bytes on the way to the node, `depth` of them.
  void set_path(std::string_view path, std::size_t depth) noexcept {
    depth_and_gone.store(depth << 1, std::memory_order_relaxed);
    before.store(end_of(path, depth), std::memory_order_relaxed);
  }
  // The digit at this depth of a key selects the slot.
  [[nodiscard]] std::size_t depth() const noexcept { return depth_and_gone.load(std::memory_order_acquire) >> 1; }
  // Unlinked, and not changed any more.
  [[nodiscard]] bool is_gone() const noexcept { return (depth_and_gone.load(std::memory_order_acquire) & 1) != 0; }
  // The first word of a node that is.
  [[nodiscard]] static constexpr std::uint64_t gone_at(std::size_t depth) noexcept { return depth << 1 | 1; }

  // True if `key` has the last `count` bytes of the path, which ends at `depth`. REQUIRES: count <= bytes_before.
  [[nodiscard]] bool follows(std::string_view key, std::size_t depth, std::size_t count) const noexcept {
    if (count == 0) return true;
    if (key.size() < depth) return false;
    const std::uint64_t differing = before.load(std::memory_order_acquire) ^ end_of(key, depth);
    return differing >> (8 * (bytes_before - count)) == 0;
  }

 private:
  // The byte before `depth` is the highest one of the word.
  [[nodiscard]] static std::uint64_t end_of(std::string_view key, std::size_t depth) noexcept {
    const std::size_t count = std::min(depth, bytes_before);
    std::uint64_t word = 0;
    std::memcpy(reinterpret_cast<char*>(&word) + (bytes_before - count), key.data() + (depth - count), count);
    return word;
  }
};

// Each kind of node has these operations, for writers with its lock held and for readers:
//
//   of_digit(digit, visit)       the word of the digit's slot; empty, if there is none. `visit(object)` is called
//                                before something is read.
//   from_digit(digit, visit)     the word of the child with the smallest digit from this one on
//   slot_of(digit)               a writer's: the slot of a digit that has a child
//   first_read(digit, visit)     calls visit(object) for what `of_digit` reads at first: for a prefetch
//   add(word, store)             a writer's: calls store(word, value) for each word that must change so that this
//                                child, whose digit has none, is added. False: there is no room, and nothing was
//                                called.

// A slot for each digit.
struct alignas(16) direct_node : header {
  static constexpr std::size_t capacity = digit_values;
  std::array<slot, capacity> slots{};

  template <class Visit>
  void first_read(std::size_t digit, Visit&& visit) const noexcept {
    visit(slots[digit]);
  }
  template <class Visit>
  [[nodiscard]] slot_word of_digit(std::size_t digit, Visit&& visit) const noexcept {
    visit(slots[digit]);
    return load(slots[digit]);
  }
  template <class Visit>
  [[nodiscard]] slot_word from_digit(std::size_t digit, Visit&& visit) const noexcept {
    for (; digit < capacity; ++digit)
      if (const slot_word word = of_digit(digit, visit); !word.is_empty()) return word;
    return {};
  }
  [[nodiscard]] slot& slot_of(std::size_t digit) noexcept { return slots[digit]; }
  template <class Store>
  bool add(slot_word word, Store&& store) noexcept {
    store(slots[word.digit()], word.word());
    return true;
  }
};

// A few slots in any order. A child stays in its slot while it is there: a search that misses a child which is added
// again meanwhile, in another slot, answers for the time in between.
template <std::size_t Count>
struct alignas(64) searched_node : header {
  static constexpr std::size_t capacity = Count;
  std::array<slot, capacity> slots{};

  template <class Visit>
  void first_read(std::size_t /*digit*/, Visit&& visit) const noexcept {
    visit(slots);
  }
  template <class Visit>
  [[nodiscard]] slot_word of_digit(std::size_t digit, Visit&& visit) const noexcept {
    for (const slot& s : slots) {
      visit(s);
      const slot_word word = load(s);
      if (word.digit() == digit && !word.is_empty()) return word;
    }
    return {};
  }
  template <class Visit>
  [[nodiscard]] slot_word from_digit(std::size_t digit, Visit&& visit) const noexcept {
    slot_word least;
    visit(slots);
    for (const slot& s : slots) {
      const slot_word word = load(s);
      if (!word.is_empty() && word.digit() >= digit && (least.is_empty() || word.digit() < least.digit())) least = word;
    }
    return least;
  }
  [[nodiscard]] slot& slot_of(std::size_t digit) noexcept {
    return *std::find_if(slots.begin(), slots.end(), [digit](const slot& s) {
      const slot_word word = load(s);
      return word.digit() == digit && !word.is_empty();
    });
  }
  template <class Store>
  bool add(slot_word word, Store&& store) noexcept {
    for (slot& s : slots)
      if (load(s).is_empty()) {
        store(s, word.word());
        return true;
      }
    return false;
  }
};

// Slots in any order, and an index: a byte for each digit is the number of its slot, from 1. A byte may lead to a slot
// that is empty, or that has another digit's child; then its own digit has none.
struct alignas(64) indexed_node : header {
  static constexpr std::size_t capacity = 45;
  static constexpr std::size_t digits_per_word = sizeof(std::uint64_t);
  std::array<std::atomic<std::uint64_t>, (digit_values + digits_per_word - 1) / digits_per_word> index{};
  std::array<slot, capacity> slots{};

  template <class Visit>
  void first_read(std::size_t digit, Visit&& visit) const noexcept {
    visit(index[digit / digits_per_word]);
  }
  template <class Visit>
  [[nodiscard]] slot_word of_digit(std::size_t digit, Visit&& visit) const noexcept {
    visit(index[digit / digits_per_word]);
    const std::size_t number = number_of(digit);
    if (number == 0 || number > capacity) return {};
    visit(slots[number - 1]);
    const slot_word word = load(slots[number - 1]);
    return word.digit() == digit ? word : slot_word();
  }
  template <class Visit>
  [[nodiscard]] slot_word from_digit(std::size_t digit, Visit&& visit) const noexcept {
    constexpr std::uint64_t lowest_byte = 0xff;
    std::uint64_t not_below = ~std::uint64_t{0} << shift_of(digit);
    for (std::size_t i = digit / digits_per_word; i < index.size(); ++i, not_below = ~std::uint64_t{0}) {
      visit(index[i]);
      std::uint64_t left = index[i].load(std::memory_order_acquire) & not_below;
      while (left != 0) {
        const auto byte = static_cast<std::size_t>(std::countr_zero(left)) / 8;
        if (const slot_word word = of_digit(digits_per_word * i + byte, visit); !word.is_empty()) return word;
        left &= ~(lowest_byte << (8 * byte));
      }
    }
    return {};
  }
  [[nodiscard]] slot& slot_of(std::size_t digit) noexcept { return slots[number_of(digit) - 1]; }
  template <class Store>
  bool add(slot_word word, Store&& store) noexcept {
    for (std::size_t i = 0; i < capacity; ++i) {
      if (!load(slots[i]).is_empty()) continue;
      std::atomic<std::uint64_t>& bytes = index[word.digit() / digits_per_word];
      const std::uint64_t others =
          bytes.load(std::memory_order_relaxed) & ~(std::uint64_t{0xff} << shift_of(word.digit()));
      store(bytes, others | std::uint64_t{i + 1} << shift_of(word.digit()));
      store(slots[i], word.word());
      return true;
    }
    return false;
  }

 private:
  [[nodiscard]] std::size_t number_of(std::size_t digit) const noexcept {
    return index[digit / digits_per_word].load(std::memory_order_acquire) >> shift_of(digit) & 0xff;
  }
  [[nodiscard]] static constexpr unsigned shift_of(std::size_t digit) noexcept {
    return static_cast<unsigned>(digit % digits_per_word) * 8;
  }
};

using kinds =
    indexes::detail::radix::node_kinds<header, searched_node<6>, searched_node<14>, indexed_node, direct_node>;

}  // namespace pmlab::strings::detail::radix
