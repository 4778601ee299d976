// The heap of a pool, read as libpmemobj keeps it: a header and zones; a zone has a header, the headers of its chunks,
// and the chunks. PMDK's own format, of libpmemobj 1.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace pmlab::media {

// A zone that libpmemobj has used. All places are offsets in the pool, in bytes.
struct pool_zone {
  static constexpr std::uint64_t chunk_bytes = std::uint64_t{256} << 10;  // bytes of each chunk
  static constexpr std::uint64_t header_bytes = 64;                       // bytes of the zone's header
  static constexpr std::uint64_t chunk_header_bytes = 8;                  // bytes of the header of each chunk

  std::uint64_t begin;        // place of its header, which the headers of its chunks follow
  std::uint64_t first_chunk;  // place of its first chunk
  std::uint64_t chunks;       // the number of chunks that are in the pool
};

// One past the header of the heap; std::nullopt: a pool of another format, or a damaged one. `base`: where the pool of
// `bytes` bytes is mapped.
[[nodiscard]] inline std::optional<std::uint64_t> first_zone_of_pool(const char* base, std::uint64_t bytes) {
  constexpr std::uint64_t heap_at = 4096 + 1024 + 16;
  constexpr std::string_view heap_signature("MEMORY_HEAP_HDR\0", 16);
  constexpr std::uint64_t heap_header = 1024;
  std::uint64_t heap = 0;
  if (bytes < heap_at + sizeof heap) return std::nullopt;
  std::memcpy(&heap, base + heap_at, sizeof heap);
  if (heap >= bytes || bytes - heap < heap_header || std::string_view(base + heap, 16) != heap_signature)
    return std::nullopt;
  return heap + heap_header;
}

// Calls function(pool_zone) for each zone that is in use. A pool of another format has none, and a damaged one some.
template <class Function>
void for_each_zone(const char* base, std::uint64_t bytes, Function&& function) {
  constexpr std::uint64_t most_chunks = 65528;
  constexpr std::uint64_t before_chunks = pool_zone::header_bytes + most_chunks * pool_zone::chunk_header_bytes;
  constexpr std::uint32_t zone_magic = 0xC3F0A2D2;
  const std::optional<std::uint64_t> first = first_zone_of_pool(base, bytes);
  if (!first) return;
  for (std::uint64_t zone = *first; zone < bytes && bytes - zone > before_chunks;
       zone += before_chunks + most_chunks * pool_zone::chunk_bytes) {
    struct {
      std::uint32_t magic, chunks;
    } header;
    std::memcpy(&header, base + zone, sizeof header);
    if (header.magic != zone_magic) return;  // not used yet
    const std::uint64_t first_chunk = zone + before_chunks;
    const std::uint64_t there = (bytes - first_chunk) / pool_zone::chunk_bytes;
    function(pool_zone{zone, first_chunk, std::min<std::uint64_t>({header.chunks, most_chunks, there})});
  }
}

}  // namespace pmlab::media
