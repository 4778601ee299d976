// Strings in an ordered index of 8-byte words: the words of a trie whose branches are several bytes wide.
//
// A layer is a node of the trie. All keys below it begin with the same bytes; each key's next `width` bytes, its slice,
// select the entry of the layer that leads to it. Several keys with the same full slice share an entry, which leads to
// another layer; that one may skip further bytes which are the same in all of them.
//
//   word of the root layer    | 0 |        code of 7 bytes: 57 bits       |
//   word of another layer     | 1 | number: 30 bits | code of up to 4: 33 |
//
// The code of a slice is its rank among all strings of up to `width` bytes, longer ones cut to their first `width`
// bytes: so words are ordered as keys are, zero bytes and ends included.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pmlab::strings::detail {

inline constexpr std::size_t root_width = 7;
inline constexpr std::size_t widest_slice = 4;  // width of every other layer
inline constexpr unsigned code_bits = 33;
inline constexpr unsigned number_bits = 30;
inline constexpr unsigned skip_bits = 16;

// codes_of(w): the number of strings of up to w bytes.
[[nodiscard]] constexpr std::uint64_t codes_of(std::size_t width) noexcept {
  std::uint64_t codes = 1;
  for (std::size_t i = 0; i < width; ++i) codes = 1 + 256 * codes;
  return codes;
}
static_assert(codes_of(root_width) <= std::uint64_t{1} << 57);

// The rank of `rest`'s first `width` bytes.
[[nodiscard]] constexpr std::uint64_t code_of(std::string_view rest, std::size_t width) noexcept {
  std::uint64_t code = 0;
  std::uint64_t below = codes_of(width);
  for (std::size_t i = 0; i < width && i < rest.size(); ++i) {
    below = (below - 1) / 256;
    code += 1 + static_cast<unsigned char>(rest[i]) * below;
  }
  return code;
}

// The bytes of a full slice, by its rank.
struct slice_bytes {
  std::array<char, root_width> bytes{};
  std::size_t width;
  [[nodiscard]] constexpr std::string_view text() const noexcept { return {bytes.data(), width}; }
};
[[nodiscard]] constexpr slice_bytes whole_slice(std::uint64_t code, std::size_t width) noexcept {
  slice_bytes slice{{}, width};
  std::uint64_t below = codes_of(width);
  for (std::size_t i = 0; i < width; ++i) {
    below = (below - 1) / 256;
    slice.bytes[i] = static_cast<char>((code - 1) / below);
    code = (code - 1) % below;
  }
  return slice;
}

// No slice has it: where a layer keeps the bytes that it skips. Last of its words.
inline constexpr std::uint64_t prefix_code = (std::uint64_t{1} << code_bits) - 1;
static_assert(codes_of(widest_slice) <= prefix_code);

struct layer {
  std::uint64_t number = 0;  // 0: the root
  std::size_t width = root_width;
  std::size_t skip = 0;  // bytes between the slice that led here and the slices of this layer

  [[nodiscard]] constexpr bool is_root() const noexcept { return number == 0; }
  [[nodiscard]] constexpr std::uint64_t word(std::uint64_t code) const noexcept {
    return is_root() ? code : std::uint64_t{1} << 63 | number << code_bits | code;
  }
  [[nodiscard]] constexpr std::uint64_t code_in(std::uint64_t word) const noexcept { return word - this->word(0); }
  [[nodiscard]] constexpr std::uint64_t word_of(std::string_view rest) const noexcept {
    return word(code_of(rest, width));
  }
  [[nodiscard]] constexpr std::uint64_t last_word() const noexcept {
    return word(is_root() ? codes_of(root_width) : prefix_code);
  }
};

inline constexpr std::uint64_t most_layers = (std::uint64_t{1} << number_bits) - 1;
inline constexpr std::size_t most_skipped = (std::size_t{1} << skip_bits) - 1;

// The target of an entry: a record (its place in the medium) or a layer, in 8 bytes.
inline constexpr std::uint64_t layer_bit = std::uint64_t{1} << 63;

[[nodiscard]] constexpr bool is_layer(std::uint64_t link) noexcept { return (link & layer_bit) != 0; }
[[nodiscard]] constexpr std::uint64_t link_to(const layer& l) noexcept {
  return layer_bit | static_cast<std::uint64_t>(l.width - 1) << (number_bits + skip_bits) |
         static_cast<std::uint64_t>(l.skip) << number_bits | l.number;
}
[[nodiscard]] constexpr layer layer_of(std::uint64_t link) noexcept {
  return {link & most_layers, 1 + ((link >> (number_bits + skip_bits)) & 3),
          static_cast<std::size_t>((link >> number_bits) & most_skipped)};
}

}  // namespace pmlab::strings::detail
