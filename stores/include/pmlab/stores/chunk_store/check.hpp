// Checks a store by a walk over all of its records: C3, C7 and C8, and C14 of records that are pairs. And what
// operations have of its parts while they run: those that have ended, also in a failure, have given it back.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/stores/chunk_store/block_owners.hpp>
#include <pmlab/stores/chunk_store/core.hpp>
#include <pmlab/stores/chunk_store/free_map.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/stripe.hpp>

#include <atomic>
#include <cstdint>
#include <string>

namespace pmlab::stores::detail::chunk_store {

// Adds each violation to a report. REQUIRES: no operation runs, and the free blocks are known.
template <class Core>
void check(all_parts<Core>& store, indexes::check_report& report) {
  block_owners owners(store.geometry.blocks, report);
  owners.reserve(store.records.first_data_block());
  store.records.for_each([&](record& r) {
    const std::uint64_t key = r.key.load(std::memory_order_acquire);
    if (key == 0) return;
    ++report.entries;
    const std::string owner = "chunk " + std::to_string(key & ((std::uint64_t{1} << 40) - 1)) + " of volume " +
                              std::to_string(volume_of(key));
    store.for_each_owned(r, [&](std::uint64_t block) { owners.own(block, owner); });
    if constexpr (!Core::has_pairs)
      if (store.find_record(key) != &r) report.add(owner + " is not in the index, or another record is");
  });
  if constexpr (Core::has_pairs)
    store.records.check(report);  // C14
  else
    store.records.for_each_entry([&](std::uint64_t key, const record& r) {
      const bool is_kept = store.keeps_unnamed() && r.key.load(std::memory_order_acquire) == 0;
      if (!has_key(r, key) && !is_kept)
        report.add("the index names a record for key " + std::to_string(key) + " that is not its own");
    });
  for (const extent& e : store.free.all()) owners.own(e, "the free map");
  for (const stripe& s : store.stripes) {
    // A merge by copy goes on behind the operation that began it.
    if (s.merges == 0 && s.gone.promised() != 0)
      report.add("replaced blocks have " + std::to_string(s.gone.promised()) + " places promised to no operation");
    if (s.gone.running() != s.merges)
      report.add(std::to_string(s.gone.running()) + " operations on chunks have not ended");
    s.gone.for_each([&](const extent& e) { owners.own(e, "a replaced write"); });
    // The chunk has them until its record is durable, and then the merge, until it ends.
    for (const auto& [merge, extents] : s.leaving)
      for (const extent& e : extents) owners.allow(e);
  }
  if constexpr (!Core::container::settles_at_once)
    store.records.for_each_held([&](const extent& e) { owners.own(e, "a write that failed"); });
  owners.end();
}

}  // namespace pmlab::stores::detail::chunk_store
