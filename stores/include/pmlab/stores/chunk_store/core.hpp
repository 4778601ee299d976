// The state of a chunk store that its parts share, and how a chunk's record is found.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/stores/chunk_store/change_count.hpp>
#include <pmlab/stores/chunk_store/chunk.hpp>
#include <pmlab/stores/chunk_store/free_map.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/options.hpp>
#include <pmlab/stores/chunk_store/plans.hpp>
#include <pmlab/stores/chunk_store/stripe.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <string>
#include <system_error>

namespace pmlab::stores::detail::chunk_store {

// All parts of a store: all_parts.hpp. Each part is a base class of it, and finds the others there by `store()`, at
// distances that the compiler knows. A reference to each would be a word that each use loads, also in simulated time.
template <class Core>
struct all_parts;

// The record is the chunk's of this key.
[[nodiscard]] inline bool has_key(const record& r, std::uint64_t key) noexcept {
  return r.key.load(std::memory_order_acquire) == key;
}

// Since the store was opened.
struct counters {
  std::atomic<std::uint64_t> in_place{0}, first{0}, redirected{0}, merges{0}, remaps{0}, copied_bytes{0},
      replaced_maps{0};
};

// `Records`: the container of the store's records.
template <class Records, blocks::device Device>
struct core {
  using container = Records;
  using medium_type = typename container::medium_type;
  using chunk = chunk_store::chunk<medium_type>;
  // The records are pairs: these are their own index, and a search for one may fail.
  static constexpr bool has_pairs = requires(container & c) { c.hits(); };
  static constexpr bool has_maps = container::has_maps;

  template <class Open>
  core(Device& on, const chunk_store_options& options, Open&& open)
      : device(on),
        geometry(on.shape()),
        in_place(geometry.atomic_bytes >= geometry.block_bytes),
        shape(shape_for(options)),
        records(open(free, shape)) {}

  [[nodiscard]] chunk chunk_of(record& r) const { return chunk(records.medium(), shape, r); }
  // False: the record is damaged. Its word for a map leads out of the medium.
  [[nodiscard]] bool has_possible_map(const record& r) const noexcept {
    if constexpr (has_maps)
      return chunk::has_possible_map(records.medium(), shape, r);
    else
      return true;
  }
  // The record that has this chunk, or is to have it; nullptr: there is none, or `failure` says that it cannot be read.
  // REQUIRES: the lock of the chunk's stripe, which keeps the record where it is.
  [[nodiscard]] record* look_up(std::uint64_t key, [[maybe_unused]] std::errc& failure) const {
    if constexpr (has_pairs)
      return records.find(key, failure);
    else
      return records.find(key);
  }
  // The record of a chunk; nullptr: it has none. While no operation runs.
  [[nodiscard]] record* find_record(std::uint64_t key) const {
    record* const r = records.find(key);
    return r != nullptr && has_key(*r, key) ? r : nullptr;
  }

  [[nodiscard]] stripe& stripe_of(std::uint64_t key) noexcept { return stripes[part_of_chunk(key)]; }

  // The volume was not removed.
  [[nodiscard]] bool is_current(volume_number v) const noexcept {
    return generations[v.id - 1].load(std::memory_order_acquire) == v.generation;
  }

  // Calls visit(block of the drive) for each block that the chunk owns: where its blocks are, and of the base extent
  // the blocks that were never written; all of them if merges copy data to it.
  template <class Visit>
  void for_each_owned(record& r, Visit&& visit) const {
    const chunk c = chunk_of(r);
    places at{};
    c.find({0, shape.blocks}, at);
    const bool keeps_base = c.merges_by_copy();
    for (std::uint32_t b = 0; b < shape.blocks; ++b) {
      const bool elsewhere = at[b] != 0 && at[b] != hole && !(keeps_base && c.in_base(at[b]));
      if (elsewhere) visit(std::uint64_t{at[b]});
      if (c.base() != no_block && (keeps_base || at[b] == 0)) visit(std::uint64_t{block_behind(c.base(), b)});
    }
  }

  Device& device;
  blocks::geometry geometry;
  bool in_place;
  chunk_shape shape;
  free_map free;
  mutable container records;  // a search changes nothing that a user sees
  std::array<stripe, parts_of_chunks> stripes;
  counters counts;
  // With each removal of a volume its number gets another generation: handles of before are void.
  std::array<std::atomic<std::uint64_t>, most_volumes> generations{};
  change_count changes;  // chunk_store::changes says of what

 private:
  [[nodiscard]] chunk_shape shape_for(const chunk_store_options& options) const {
    const std::uint64_t blocks = options.chunk_bytes / geometry.block_bytes;
    if (!std::has_single_bit(options.chunk_bytes) || blocks == 0 || blocks > most_blocks_of_chunk)
      throw error("a chunk of " + std::to_string(options.chunk_bytes) + " bytes on a drive with blocks of " +
                      std::to_string(geometry.block_bytes),
                  "choose a power of two, 1 to 256 blocks");
    if (options.ring == 0 || options.ring > 30)
      throw error("a ring of " + std::to_string(options.ring) + " entries", "choose 1 to 30");
    return {static_cast<std::uint32_t>(blocks), options.ring, options.merge};
  }
};

}  // namespace pmlab::stores::detail::chunk_store
