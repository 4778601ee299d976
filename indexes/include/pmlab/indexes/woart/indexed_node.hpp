// The node of 47 children of a WOART: slots in any order, and a byte for each digit that leads to its slot.
#pragma once

#include <pmlab/indexes/detail/radix/node.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::woart {

// A byte of the index is the number of the digit's slot, from 1; eight bytes are stored as one word. The slot's word
// commits, the index only leads to it: a byte may lead to a slot that is empty or has another digit's child, and then
// its digit has none. A slot that no byte leads to is invisible: a crash leaves one if it keeps the slot of an insert
// that has not returned, but not its index. It is made empty before it is used again.
template <class Digits>
struct alignas(radix::node_alignment(47)) indexed_node : radix::header {
  static constexpr std::size_t capacity = 47;
  static constexpr bool has_slot_for_each_digit = false;
  static constexpr unsigned bits_per_byte = 8;
  std::array<std::atomic<std::uint64_t>, Digits::values / sizeof(std::uint64_t)> index{};
  std::array<radix::slot, capacity> slots;

  // The number of the slot that the digit's byte leads to, or `capacity`.
  [[nodiscard]] std::size_t number_of(std::size_t digit) const noexcept {
    const std::size_t byte = byte_of(digit);
    return byte == 0 || byte > capacity ? capacity : byte - 1;
  }

  // False: no operation makes such an index.
  [[nodiscard]] bool has_sound_index() const noexcept {
    for (std::size_t digit = 0; digit < Digits::values; ++digit)
      if (byte_of(digit) > capacity) return false;
    return true;
  }

  template <class Visit>
  void first_read(std::size_t digit, Visit&& visit) const noexcept {
    visit(word_of(digit));
  }
  template <class Visit>
  [[nodiscard]] radix::found_slot of_digit(std::size_t digit, unsigned depth, Visit&& visit) noexcept {
    visit(word_of(digit));
    const std::size_t i = number_of(digit);
    if (i == capacity) return {};
    visit(slots[i]);
    const radix::slot_word word = slots[i].load();
    if (word.is_empty() || word.template digit<Digits>(depth) != digit) return {};
    return {&slots[i], word};
  }
  template <class Clear>
  [[nodiscard]] radix::place free_place(std::size_t digit, unsigned depth, Clear&& clear) noexcept {
    for (std::size_t i = 0; i < capacity; ++i) {
      if (has_child(i, depth)) continue;
      if (!slots[i].load().is_empty()) clear(slots[i]);
      std::atomic<std::uint64_t>& word = word_of(digit);
      const std::uint64_t others = word.load(std::memory_order_relaxed) & ~(std::uint64_t{0xff} << shift_of(digit));
      return {&slots[i], &word, others | std::uint64_t{i + 1} << shift_of(digit)};
    }
    return {};
  }
  [[nodiscard]] bool has_child(std::size_t i, unsigned depth) const noexcept {
    const radix::slot_word word = slots[i].load();
    return !word.is_empty() && number_of(word.template digit<Digits>(depth)) == i;
  }
  template <class Visit>
  std::size_t collect(std::size_t first, unsigned depth, radix::children& found, Visit&& visit) const noexcept {
    visit(index);
    for (; first < Digits::values && !found.is_full(); ++first) {
      const std::size_t i = number_of(first);
      if (i == capacity) continue;
      visit(slots[i]);
      const radix::slot_word word = slots[i].load();
      if (!word.is_empty() && word.template digit<Digits>(depth) == first)
        found.insert({first, word, slots[i].value.load(std::memory_order_acquire)});
    }
    return first;
  }

 private:
  [[nodiscard]] std::size_t byte_of(std::size_t digit) const noexcept {
    return word_of(digit).load(std::memory_order_acquire) >> shift_of(digit) & 0xff;
  }
  [[nodiscard]] static constexpr unsigned shift_of(std::size_t digit) noexcept {
    return static_cast<unsigned>(digit % sizeof(std::uint64_t)) * bits_per_byte;
  }
  [[nodiscard]] std::atomic<std::uint64_t>& word_of(std::size_t digit) noexcept {
    return index[digit / sizeof(std::uint64_t)];
  }
  [[nodiscard]] const std::atomic<std::uint64_t>& word_of(std::size_t digit) const noexcept {
    return index[digit / sizeof(std::uint64_t)];
  }
};

}  // namespace pmlab::indexes::detail::woart
