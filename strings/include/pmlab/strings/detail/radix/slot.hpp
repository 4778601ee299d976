// The slot of a radix tree of strings: one word, so one store commits each change of it.
//
//   bits 63..57     56..48    47..4                      3..0
//      0              0       0                           0      nothing
//      0            digit     pointer to the record / 16  0      a record: the key begins with the way to it
//   skip            digit     pointer to the node / 16   kind    a node of that kind
//
// The digit is the one that the slot stands for in its own node. `skip` is the depth of the linked node less that of
// the node with the slot; 0: it does not fit, and the linked node's header has the depth. So a search reads a header
// only behind a skip of more than 127 bytes.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pmlab::strings::detail::radix {

// The digits of a key: at each byte its value + 1, and 0 where the key ends. So every byte may be in a key, a key may
// be the beginning of another one, and the order of digits is that of the keys.
inline constexpr std::size_t digit_values = 257;

// The digit of `key` at `depth`, which is at most one beyond its bytes.
[[nodiscard]] inline std::size_t digit_at(std::string_view key, std::size_t depth) noexcept {
  return depth < key.size() ? std::size_t{1} + static_cast<unsigned char>(key[depth]) : 0;
}

// See the file's prologue.
class slot_word {
 public:
  // An empty slot.
  constexpr slot_word() noexcept = default;
  // `word`: of a slot.
  constexpr explicit slot_word(std::uint64_t word) noexcept : word_(word) {}

  // `place`: of a block, the word of a pointer below 2^48, to a multiple of 16.
  [[nodiscard]] static constexpr slot_word record(std::uint64_t place, std::size_t digit) noexcept {
    return slot_word(std::uint64_t{digit} << digit_shift | place);
  }
  [[nodiscard]] static constexpr slot_word link(std::uint64_t place, unsigned kind, std::size_t digit,
                                                std::size_t skip) noexcept {
    return slot_word(std::uint64_t{skip <= most_skip ? skip : 0} << skip_shift | std::uint64_t{digit} << digit_shift |
                     place | kind);
  }
  // The same target for another slot: of this digit and, of a node, with so many bytes skipped.
  [[nodiscard]] constexpr slot_word moved_to(std::size_t digit, std::size_t skip) const noexcept {
    return is_link() ? link(place(), kind(), digit, skip) : record(place(), digit);
  }

  [[nodiscard]] constexpr bool is_empty() const noexcept { return word_ == 0; }
  [[nodiscard]] constexpr bool is_link() const noexcept { return kind() != 0; }
  // The word of the pointer to the record or node.
  [[nodiscard]] constexpr std::uint64_t place() const noexcept { return word_ & place_mask; }
  [[nodiscard]] constexpr unsigned kind() const noexcept { return static_cast<unsigned>(word_ & kind_mask); }
  [[nodiscard]] constexpr std::size_t digit() const noexcept { return word_ >> digit_shift & digit_mask; }
  // 0: the header has the depth.
  [[nodiscard]] constexpr std::size_t skip() const noexcept { return word_ >> skip_shift; }

  // The word as it is stored.
  [[nodiscard]] constexpr std::uint64_t word() const noexcept { return word_; }
  friend constexpr bool operator==(slot_word, slot_word) noexcept = default;

 private:
  static constexpr unsigned skip_shift = 57;
  static constexpr std::size_t most_skip = 127;
  static constexpr unsigned digit_shift = 48;
  static constexpr std::uint64_t digit_mask = 0x1ff;
  static constexpr std::uint64_t kind_mask = 15;
  static constexpr std::uint64_t place_mask = ((std::uint64_t{1} << digit_shift) - 1) & ~kind_mask;

  std::uint64_t word_ = 0;
};

}  // namespace pmlab::strings::detail::radix
