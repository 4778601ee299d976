// The kinds of blocks that a pool holds, read from its heap.
#pragma once

#include <pmlab/media/pool_heap.hpp>

#include <cstdint>
#include <cstring>

namespace pmlab::media {

// The blocks that a run of chunks is divided into.
struct run_kind {
  std::uint64_t block_bytes = 0;  // bytes of each block
  std::uint64_t alignment = 0;    // alignment of the blocks, in bytes; 0: none
  std::uint64_t run_bytes = 0;    // bytes of the whole run

  friend bool operator==(const run_kind&, const run_kind&) = default;
};

// Calls function(kind) for the runs of aligned blocks without headers, often with the same kind one after the other. A
// pool of another format has none, and a damaged one some. `base`: where the open pool of `bytes` bytes is mapped.
// Reads 8 bytes for each 256 KB of the pool, and 16 of each run. No other thread may use the pool.
template <class Function>
void for_each_aligned_run(const char* base, std::uint64_t bytes, Function&& function) {
  constexpr std::uint16_t is_run = 4;
  constexpr std::uint16_t has_no_header = 2;
  constexpr std::uint16_t is_aligned = 4;
  const auto read = [base](auto& to, std::uint64_t at) { std::memcpy(&to, base + at, sizeof to); };

  bool is_sound = true;
  for_each_zone(base, bytes, [&](const pool_zone& zone) {
    struct {
      std::uint16_t type, flags;
      std::uint32_t chunks;
    } of_chunk;
    static_assert(sizeof of_chunk == pool_zone::chunk_header_bytes);
    for (std::uint64_t i = 0; is_sound && i < zone.chunks; i += of_chunk.chunks) {
      read(of_chunk, zone.begin + pool_zone::header_bytes + i * sizeof of_chunk);
      is_sound = of_chunk.chunks != 0 && of_chunk.chunks <= zone.chunks - i;
      constexpr std::uint16_t wanted = has_no_header | is_aligned;
      if (!is_sound || of_chunk.type != is_run || (of_chunk.flags & wanted) != wanted) continue;
      struct {
        std::uint64_t block_bytes, alignment;
      } of_run;
      read(of_run, zone.first_chunk + i * pool_zone::chunk_bytes);
      function(run_kind{of_run.block_bytes, of_run.alignment, of_chunk.chunks * pool_zone::chunk_bytes});
    }
  });
}

}  // namespace pmlab::media
