// The words of a radix tree: parts of a key, and the word of a slot.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::radix {

// Keys as strings of digits, the most significant one first. `Bits`: of a digit; divides 64.
template <unsigned Bits>
struct digits {
  static constexpr unsigned bits = Bits;
  static constexpr unsigned per_key = 64 / Bits;
  static constexpr std::size_t values = std::size_t{1} << Bits;  // values of one digit

  // The digit at `depth`, which is below `per_key`.
  [[nodiscard]] static constexpr std::size_t at(std::uint64_t key, unsigned depth) noexcept {
    return key >> (64 - Bits * (depth + 1)) & (values - 1);
  }
  // The bits of the digits before `depth`.
  [[nodiscard]] static constexpr std::uint64_t mask_before(unsigned depth) noexcept {
    return depth == 0 ? 0 : ~std::uint64_t{0} << (64 - Bits * depth);
  }
  // The first digit in which two keys differ. REQUIRES: they do.
  [[nodiscard]] static constexpr unsigned first_difference(std::uint64_t a, std::uint64_t b) noexcept {
    return static_cast<unsigned>(std::countl_zero(a ^ b)) / Bits;
  }
};

// The first word of a slot. One store of it commits each change of the slot:
//
//   bits 63..60   59..56   55..48   47..4                      3..0
//        0        0                                                nothing
//        1        the lower 60 bits of the key                     an entry, whose value is the slot's second word
//        2        depth    digit    pointer to the child / 16   kind of the child
//
// The four upper bits of a key are implied by the root's slot that its path begins in. A link holds all that a search
// needs to continue in the child: its kind, and the depth of the digit that selects the slot there; so a search reads
// no header. The digit is the one that the link stands for in its own node: small nodes are searched for it.
class slot_word {
 public:
  // Not initialised.
  slot_word() noexcept = default;
  // `word`: of a slot.
  constexpr explicit slot_word(std::uint64_t word) noexcept : word_(word) {}

  [[nodiscard]] static constexpr slot_word entry(std::uint64_t key) noexcept {
    return slot_word(entry_tag | (key & suffix_mask));
  }
  // `child`: the word of a pointer below 2^48, to a block at a multiple of 16.
  [[nodiscard]] static constexpr slot_word link(std::uint64_t child, unsigned kind, unsigned depth,
                                                std::size_t digit) noexcept {
    return slot_word(link_tag | std::uint64_t{depth} << depth_shift | std::uint64_t{digit} << digit_shift | child |
                     kind);
  }

  [[nodiscard]] constexpr bool is_empty() const noexcept { return word_ == 0; }
  [[nodiscard]] constexpr bool is_entry() const noexcept { return word_ >> tag_shift == entry_tag >> tag_shift; }
  [[nodiscard]] constexpr bool is_link() const noexcept { return word_ >> tag_shift == link_tag >> tag_shift; }

  // The key of an entry. `root_digit_of`: any key below the same slot of the root.
  [[nodiscard]] constexpr std::uint64_t key(std::uint64_t root_digit_of) const noexcept {
    return (root_digit_of & ~suffix_mask) | (word_ & suffix_mask);
  }

  // The fields of a link.
  [[nodiscard]] constexpr std::uint64_t child() const noexcept { return word_ & pointer_mask; }
  [[nodiscard]] constexpr unsigned kind() const noexcept { return static_cast<unsigned>(word_ & kind_mask); }
  [[nodiscard]] constexpr unsigned depth() const noexcept {
    return static_cast<unsigned>(word_ >> depth_shift & depth_mask);
  }
  // The same link for another digit: below another parent.
  [[nodiscard]] constexpr slot_word with_digit(std::size_t digit) const noexcept {
    return slot_word((word_ & ~digit_mask) | std::uint64_t{digit} << digit_shift);
  }

  // The digit that an entry or a link stands for in a node of depth 1 or more.
  template <class Digits>
  [[nodiscard]] constexpr std::size_t digit(unsigned depth) const noexcept {
    return is_link() ? word_ >> digit_shift & 0xff : Digits::at(word_, depth);
  }
  // True: a link that stands for this digit.
  [[nodiscard]] constexpr bool links(std::size_t digit) const noexcept {
    return (word_ & (tag_mask | digit_mask)) == (link_tag | std::uint64_t{digit} << digit_shift);
  }

  // The word as it is stored.
  [[nodiscard]] constexpr std::uint64_t word() const noexcept { return word_; }
  friend constexpr bool operator==(slot_word, slot_word) noexcept = default;

 private:
  static constexpr unsigned tag_shift = 60;
  static constexpr unsigned depth_shift = 56;
  static constexpr unsigned digit_shift = 48;
  static constexpr std::uint64_t tag_mask = std::uint64_t{15} << tag_shift;
  static constexpr std::uint64_t entry_tag = std::uint64_t{1} << tag_shift;
  static constexpr std::uint64_t link_tag = std::uint64_t{2} << tag_shift;
  static constexpr std::uint64_t suffix_mask = entry_tag - 1;
  static constexpr std::uint64_t depth_mask = 15;
  static constexpr std::uint64_t digit_mask = std::uint64_t{0xff} << digit_shift;
  static constexpr std::uint64_t kind_mask = 15;
  static constexpr std::uint64_t pointer_mask = ((std::uint64_t{1} << digit_shift) - 1) & ~kind_mask;

  std::uint64_t word_;
};

}  // namespace pmlab::indexes::detail::radix
