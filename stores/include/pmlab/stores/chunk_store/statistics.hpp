// The figures of a store.
#pragma once

#include <pmlab/stores/chunk_store/core.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/options.hpp>

#include <atomic>
#include <cstdint>

namespace pmlab::stores::detail::chunk_store {

// Walks all records. Exact while no operation runs. REQUIRES: the free blocks are known.
template <class Core>
[[nodiscard]] chunk_store_stats stats_of(all_parts<Core>& store) {
  chunk_store_stats s;
  store.records.for_each([&](record& r) {
    const auto guard = store.records.guard(r);
    s.chunks += r.key.load(std::memory_order_acquire) != 0 ? 1 : 0;
  });
  for (std::uint32_t i = 0; i < store.records.volumes(); ++i)
    s.volumes += store.records.state_of_volume(i) == volume_state::there ? 1 : 0;
  s.free_bytes = store.free.free_blocks() * store.geometry.block_bytes;
  s.longest_free_extent = std::uint64_t{store.free.longest_extent()} * store.geometry.block_bytes;
  s.medium_bytes = store.records.bytes();
  s.in_place = store.counts.in_place.load(std::memory_order_relaxed);
  s.first = store.counts.first.load(std::memory_order_relaxed);
  s.redirected = store.counts.redirected.load(std::memory_order_relaxed);
  s.merges = store.counts.merges.load(std::memory_order_relaxed);
  s.copied_bytes = store.counts.copied_bytes.load(std::memory_order_relaxed);
  s.remaps = store.counts.remaps.load(std::memory_order_relaxed);
  s.replaced_maps = store.counts.replaced_maps.load(std::memory_order_relaxed);
  if constexpr (Core::has_pairs) {
    s.record_hits = store.records.hits();
    s.record_misses = store.records.misses();
  }
  return s;
}

}  // namespace pmlab::stores::detail::chunk_store
