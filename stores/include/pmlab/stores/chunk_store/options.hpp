// Options, promises and figures of a chunk store.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>

#include <array>
#include <cstdint>

namespace pmlab::stores {

// Chosen when a store is made; a store that is opened again has those it was made with.
struct chunk_store_options {
  std::uint64_t chunk_bytes = std::uint64_t{1} << 20;  // a power of two of blocks, 1 to 256 of them
  std::uint32_t ring = 16;                             // entries of a chunk's ring, 1 to 30
  merge_policy merge = merge_policy::remap;            // how a full ring gets room
  // Makes an empty store on a drive that another store had. All of its data is lost.
  bool format = false;
  // Reads are answered at once. The free blocks are found after `open` has returned, by a thread of the store's own,
  // or, without one, by the first operation that needs them.
  bool recovers_in_background = true;
  unsigned recovery_threads = 0;  // that find the free blocks; 0: sync::recovery_threads
  // Identity of the new store; zeros: it is chosen at random.
  std::array<std::uint64_t, 2> identity{};
};

// Options of chunk_store::volume.
struct volume_options {
  std::uint64_t bytes = 0;  // size of a new volume, a multiple of a block; an existing one has its own
};

// What a store promises on its drive.
struct chunk_store_promises {
  std::uint64_t atomic_bytes = 0;  // a write within an aligned range of so many bytes is atomic
  bool writes_in_place = false;    // overwrites of one block: the drive keeps a block whole
  bool durable = false;            // what returned survives a power failure: the medium is durable
};

// Figures of a store.
struct chunk_store_stats {
  std::uint64_t chunks = 0;               // with a record
  std::uint64_t volumes = 0;              // that are there
  std::uint64_t free_bytes = 0;           // free space of the drive
  std::uint64_t longest_free_extent = 0;  // bytes
  std::uint64_t medium_bytes = 0;         // records, maps and the index
  // Since the store was opened.
  std::uint64_t in_place = 0;       // writes to the place that a block had
  std::uint64_t first = 0;          // first writes, to the base extent
  std::uint64_t redirected = 0;     // writes to free blocks
  std::uint64_t merges = 0;         // rings that were merged, by either policy
  std::uint64_t copied_bytes = 0;   // by merges
  std::uint64_t remaps = 0;         // merges of these into a map
  std::uint64_t replaced_maps = 0;  // writes of more pieces than a ring has entries
  // Counts for records on a key-value device:
  std::uint64_t record_hits = 0;    // searches that found the record in DRAM
  std::uint64_t record_misses = 0;  // that read it, or found none
};

// The drive or the medium has no space for an operation. The chunk is unchanged, and the store goes on.
class chunk_store_full : public error {
 public:
  using error::error;
};

}  // namespace pmlab::stores
