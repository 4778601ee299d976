// How the headers of the library's stores begin: the one place of their magics. A file takes the size of its blocks
// from the header, before the store is opened (blocks/file/recorded_blocks.hpp).
#pragma once

#include <pmlab/base/requirements.hpp>

#include <array>
#include <cstddef>

namespace pmlab::blocks {

// How the header of a store begins, and where it has the bytes of a block, as a word.
struct store_mark {
  std::array<char, 8> magic{};     // its first bytes
  std::size_t block_bytes_at = 0;  // offset of the word
};
// The mark of a chunk_store.
inline constexpr store_mark chunk_store_mark{{'P', 'M', 'L', 'C', 'H', 'U', 'N', 'K'}, 32};
// The mark of a kv_device.
inline constexpr store_mark kv_ssd_mark{{'P', 'M', 'L', 'K', 'V', 'S', 'S', 'D'}, 32};
// The mark of a tiered store.
inline constexpr store_mark tiered_mark{{'P', 'M', 'L', 'T', 'I', 'E', 'R', 'D'}, 40};
// All of them.
inline constexpr std::array store_marks{chunk_store_mark, kv_ssd_mark, tiered_mark};

}  // namespace pmlab::blocks
