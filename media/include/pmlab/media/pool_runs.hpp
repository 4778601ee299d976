// The kinds of blocks that a pool holds, read from its heap.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace pmlab::media {

// The blocks that a run of chunks is divided into.
struct run_kind {
  std::uint64_t block_bytes = 0;  // of each block
  std::uint64_t alignment = 0;    // of the blocks, in bytes; 0: none
  std::uint64_t run_bytes = 0;    // of the whole run

  friend bool operator==(const run_kind&, const run_kind&) = default;
};

// Calls function(kind) for the runs of aligned blocks without headers, often with the same kind one after the other. A
// pool of another format has none, and a damaged one some. `base`: where the open pool of `bytes` bytes is mapped. Reads
// 8 bytes for each 256 KB of the pool, and 16 of each run. No other thread may use the pool.
template <class Function>
void for_each_aligned_run(const char* base, std::uint64_t bytes, Function&& function) {
  // PMDK's own format, of libpmemobj 1: the heap has a header and zones; a zone has a header, the headers of its chunks,
  // and the chunks.
  constexpr std::uint64_t heap_at = 4096 + 1024 + 16;
  constexpr std::string_view heap_signature("MEMORY_HEAP_HDR\0", 16);
  constexpr std::uint64_t heap_header = 1024;
  constexpr std::uint64_t most_chunks = 65528;
  constexpr std::uint64_t chunk_bytes = std::uint64_t{256} << 10;
  constexpr std::uint64_t zone_header = 64;
  constexpr std::uint64_t before_chunks = zone_header + most_chunks * sizeof(std::uint64_t);
  constexpr std::uint32_t zone_magic = 0xC3F0A2D2;
  constexpr std::uint16_t is_run = 4;
  constexpr std::uint16_t has_no_header = 2;
  constexpr std::uint16_t is_aligned = 4;
  const auto read = [base](auto& to, std::uint64_t at) { std::memcpy(&to, base + at, sizeof to); };

  std::uint64_t heap = 0;
  if (bytes < heap_at + sizeof heap) return;
  read(heap, heap_at);
  if (heap >= bytes || bytes - heap < heap_header || std::string_view(base + heap, 16) != heap_signature) return;
  for (std::uint64_t zone = heap + heap_header; zone < bytes && bytes - zone > before_chunks;
       zone += before_chunks + most_chunks * chunk_bytes) {
    struct {
      std::uint32_t magic, chunks;
    } of_zone;
    read(of_zone, zone);
    if (of_zone.magic != zone_magic) return;  // not used yet
    const std::uint64_t first_chunk = zone + before_chunks;
    const std::uint64_t there = (bytes - first_chunk) / chunk_bytes;
    const std::uint64_t chunks = std::min<std::uint64_t>({of_zone.chunks, most_chunks, there});
    struct {
      std::uint16_t type, flags;
      std::uint32_t chunks;
    } of_chunk;
    for (std::uint64_t i = 0; i < chunks; i += of_chunk.chunks) {
      read(of_chunk, zone + zone_header + i * sizeof of_chunk);
      if (of_chunk.chunks == 0 || of_chunk.chunks > chunks - i) return;
      constexpr std::uint16_t wanted = has_no_header | is_aligned;
      if (of_chunk.type != is_run || (of_chunk.flags & wanted) != wanted) continue;
      struct {
        std::uint64_t block_bytes, alignment;
      } of_run;
      read(of_run, first_chunk + i * chunk_bytes);
      function(run_kind{of_run.block_bytes, of_run.alignment, of_chunk.chunks * chunk_bytes});
    }
  }
}

}  // namespace pmlab::media
