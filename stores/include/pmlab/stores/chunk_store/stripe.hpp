// The chunks of a store in parts: what operations under way have of them, behind one lock for each part.
#pragma once

#include <pmlab/base/hash.hpp>
#include <pmlab/stores/chunk_store/chunk.hpp>
#include <pmlab/stores/chunk_store/free_map.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/limbo.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// Parts of all chunks, by hash: chunks of one part have one lock of the store, which is the lock of its cached records.
inline constexpr std::size_t parts_of_chunks = 64;
[[nodiscard]] constexpr std::size_t part_of_chunk(std::uint64_t key) noexcept {
  return static_cast<std::size_t>(mix_bits(key) % parts_of_chunks);
}

// A chunk with writes under way.
struct writer_state {
  record* where = nullptr;
  std::uint32_t base = no_block;
  bool removing = false;                        // the chunk is being removed: the only user
  bool may_be_named = false;                    // a change of its record was added
  std::uint64_t failed_era = 0;                 // in which the last change failed
  unsigned writers = 0;                         // and a merge by copy
  unsigned direct = 0;                          // writers among them to places that a merge by copy may read or write
  std::uint64_t merge = 0;                      // the merge by copy under way; 0: none
  bool merge_is_void = false;                   // its entries went into a map meanwhile
  bool is_full_enough = false;                  // as chunk::is_full_enough
  bool lacks_room = false;                      // a write waits for a merge
  std::array<std::uint64_t, 4> first_writes{};  // blocks of the base extent that a first write is being made to

  void failed_in(std::uint64_t era) noexcept { failed_era = std::max(failed_era, era); }
  [[nodiscard]] bool has_users() const noexcept { return removing || writers > (merge != 0 ? 1U : 0U); }
  // Writes to the places that blocks have stop before a merge by copy begins, and until it ends.
  [[nodiscard]] bool may_write_directly() const noexcept { return merge == 0 && !is_full_enough && !lacks_room; }
  [[nodiscard]] bool wants_merge() const noexcept {
    return (is_full_enough || lacks_room) && merge == 0 && direct == 0;
  }
  [[nodiscard]] bool is_marked(std::uint32_t b) const noexcept { return (first_writes[b / 64] >> (b % 64) & 1) != 0; }
  void mark(range of) noexcept {
    for (std::uint32_t b = of.first; b < of.end(); ++b) first_writes[b / 64] |= std::uint64_t{1} << (b % 64);
  }
  void unmark(range of) noexcept {
    for (std::uint32_t b = of.first; b < of.end(); ++b) first_writes[b / 64] &= ~(std::uint64_t{1} << (b % 64));
  }
};

// Chunks with one lock.
struct stripe {
  mutable std::mutex mutex;  // guards these, and the words of the stripe's chunks
  limbo gone;
  reader_epochs readers;
  unsigned merges = 0;  // by copy, under way
  // Reads under way that a write in place could come between. Some chunks share a count.
  std::array<std::uint32_t, 16> wide_reads{};
  [[nodiscard]] std::uint32_t& wide_reads_of(std::uint64_t key) noexcept {
    return wide_reads[mix_bits(key) / parts_of_chunks % wide_reads.size()];
  }
  // The blocks that they replace: of those whose record is being written.
  std::unordered_map<std::uint64_t, std::vector<extent>> leaving;
  std::unordered_map<std::uint64_t, writer_state> writers;
};

}  // namespace pmlab::stores::detail::chunk_store
