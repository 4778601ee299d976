// The commit word of a wB+-tree's node: which of its slots are entries, and in which order.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::wb_tree {

// Entries of a node: as many as have room beside a header of four words in one device line, and as four bits each can
// name beside count and level in one word.
inline constexpr std::size_t capacity = 14;

// Levels of a tree: a full one of that height would hold 2^53 entries. No node of a tree is on `gone_level`.
inline constexpr std::uint64_t most_levels = 14;
inline constexpr std::uint64_t gone_level = 14;

//   bit 0       4           8        12       16           60       64
//   |   count   | level + 1 | slot 0 | slot 1 | ...        | slot 13 |
//
// The paper's slot array, in the variant of one word: the numbers of the slots that are entries, in ascending order of
// their keys. The paper's bitmap is the set of these numbers. Positions from `count` on are zero. Zero is no valid
// word: overwritten nodes are noticed. A value; one store of it changes a node from one valid state to the next.
class slot_array {
 public:
  constexpr slot_array() noexcept = default;
  constexpr explicit slot_array(std::uint64_t word) noexcept : word_(word) {}

  // No entries, on this level.
  [[nodiscard]] static constexpr slot_array empty(std::uint64_t level) noexcept {
    return slot_array((level + 1) << level_shift);
  }

  [[nodiscard]] constexpr std::uint64_t word() const noexcept { return word_; }
  // At most `capacity`, whatever the word is.
  [[nodiscard]] constexpr std::size_t count() const noexcept {
    return std::min(static_cast<std::size_t>(word_ & nibble), capacity);
  }
  [[nodiscard]] constexpr std::uint64_t level() const noexcept { return (word_ >> level_shift & nibble) - 1; }
  [[nodiscard]] constexpr bool is_full() const noexcept { return count() == capacity; }

  // The slot of the entry with `rank` smaller ones, for a rank of at most `capacity`; below `capacity`, whatever the
  // word is.
  [[nodiscard]] constexpr std::size_t operator[](std::size_t rank) const noexcept {
    const auto slot = static_cast<std::size_t>(word_ >> first_shift >> (width * rank) & nibble);
    return slot < capacity ? slot : 0;
  }

  // The first slot that is no entry. REQUIRES: not full.
  [[nodiscard]] constexpr std::size_t first_free() const noexcept {
    return static_cast<std::size_t>(std::countr_zero(free_slots()));
  }
  // The last one. REQUIRES: not full.
  [[nodiscard]] constexpr std::size_t last_free() const noexcept {
    return static_cast<std::size_t>(std::bit_width(free_slots())) - 1;
  }

  // The same and `slot`, which is free, at `rank`. REQUIRES: not full.
  [[nodiscard]] constexpr slot_array with(std::size_t rank, std::size_t slot) const noexcept {
    const std::uint64_t below = below_rank(rank);
    const std::uint64_t above = ~std::uint64_t{0} << first_shift & ~below;
    return slot_array((word_ & below) + 1 + (std::uint64_t{slot} << (first_shift + width * rank)) +
                      ((word_ & above) << width));
  }
  // The same without the entry at `rank`. REQUIRES: there is one.
  [[nodiscard]] constexpr slot_array without(std::size_t rank) const noexcept {
    const std::uint64_t below = below_rank(rank);
    return slot_array(((word_ & below) - 1) | (word_ >> width & ~below & ~header));
  }
  // Its first `count` entries.
  [[nodiscard]] constexpr slot_array first(std::size_t count) const noexcept {
    return slot_array((word_ & below_rank(count) & ~nibble) | count);
  }
  // The same, on a level.
  [[nodiscard]] constexpr slot_array on_level(std::uint64_t level) const noexcept {
    return slot_array((word_ & ~(nibble << level_shift)) | (level + 1) << level_shift);
  }

  // False: no operation makes such a word.
  [[nodiscard]] constexpr bool is_valid() const noexcept {
    const std::uint64_t entries = word_ & nibble;
    if (level() > gone_level || entries > capacity || (word_ & ~below_rank(count())) != 0) return false;
    std::uint64_t used = 0;
    for (std::size_t rank = 0; rank < entries; ++rank) {
      const std::uint64_t bit = std::uint64_t{1} << (word_ >> (first_shift + width * rank) & nibble);
      if (bit >= std::uint64_t{1} << capacity || (used & bit) != 0) return false;
      used |= bit;
    }
    return true;
  }

 private:
  // A bit for each.
  [[nodiscard]] constexpr std::uint64_t free_slots() const noexcept {
    std::uint64_t free = (std::uint64_t{1} << capacity) - 1;
    for (std::size_t rank = 0; rank < count(); ++rank) free &= ~(std::uint64_t{1} << (*this)[rank]);
    return free;
  }

  static constexpr std::uint64_t nibble = 15;
  static constexpr unsigned width = 4;
  static constexpr unsigned level_shift = 4;
  static constexpr unsigned first_shift = 8;
  static constexpr std::uint64_t header = (std::uint64_t{1} << first_shift) - 1;

  // The bits of count, level, and the positions before `rank`.
  [[nodiscard]] static constexpr std::uint64_t below_rank(std::size_t rank) noexcept {
    return rank == capacity ? ~std::uint64_t{0} : (std::uint64_t{1} << (first_shift + width * rank)) - 1;
  }

  std::uint64_t word_ = 0;
};

}  // namespace pmlab::indexes::detail::wb_tree
