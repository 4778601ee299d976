// The block size that the store on a file was made with, as its header in block 0 has it.
#pragma once

#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/store_mark.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include <unistd.h>

namespace pmlab::blocks {

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
