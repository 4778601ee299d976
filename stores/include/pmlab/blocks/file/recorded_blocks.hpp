// The block size that the store on a file was made with, as its header in block 0 has it.
#pragma once

#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include <unistd.h>

namespace pmlab::blocks {

// How the header of a store begins, and where it has the bytes of a block, as a word.
struct store_mark {
  std::array<char, 8> magic{};     // its first bytes
  std::size_t block_bytes_at = 0;  // offset of the word
};
// The stores of the library.
inline constexpr std::array<store_mark, 3> store_marks{{
    {{'P', 'M', 'L', 'C', 'H', 'U', 'N', 'K'}, 32},
    {{'P', 'M', 'L', 'K', 'V', 'S', 'S', 'D'}, 32},
    {{'P', 'M', 'L', 'T', 'I', 'E', 'R', 'D'}, 40},
}};

// std::nullopt: the file has no store, or its header has no possible size. The store checks its header itself.
[[nodiscard]] inline std::optional<std::uint32_t> block_bytes_of_store(int file) {
  buffer first(data_alignment);
  if (::pread(file, first.data(), first.size(), 0) < static_cast<ssize_t>(least_block_bytes)) return std::nullopt;
  for (const store_mark& mark : store_marks) {
    if (std::memcmp(first.data(), mark.magic.data(), mark.magic.size()) != 0) continue;
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, first.data() + mark.block_bytes_at, sizeof bytes);
    if (bytes >= least_block_bytes && bytes <= most_block_bytes && std::has_single_bit(bytes))
      return static_cast<std::uint32_t>(bytes);
  }
  return std::nullopt;
}

}  // namespace pmlab::blocks
