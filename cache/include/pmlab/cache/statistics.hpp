// Counters of a cache since it was opened.
#pragma once

#include <pmlab/base/counters.hpp>
#include <pmlab/cache/options.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace pmlab::cache {

// Counts of one moment; exact when nothing runs.
struct statistics {
  std::uint64_t hits = 0;       // answered from the cache
  std::uint64_t misses = 0;     // searched in the cache and in the index; bypassing lookups are neither
  std::uint64_t fills = 0;      // entries that were installed
  std::uint64_t drops = 0;      // fills that were dropped because the queue was full or the cache was closed
  std::uint64_t evictions = 0;  // entries that made room for another one
  std::uint64_t stale = 0;      // fills rejected: a write of their set, or another caller's fill, was first
  std::uint64_t switches = 0;   // switches of a shard's mode
  std::uint64_t helped = 0;     // misses that a helper answered
  // Lookups in each mode, by its number; of bypassing ones, those that were sampled or of a batch: others leave no
  // trace.
  std::array<std::uint64_t, mode_names.size()> lookups{};
  std::uint64_t capacity = 0;  // entries
  std::uint64_t bytes = 0;     // bytes of DRAM: entries, queues and counters

  // The counts that `operator-=` subtracts, in the order of results.
  static constexpr std::array counters{
      counter{&statistics::hits, "hits"},           counter{&statistics::misses, "misses"},
      counter{&statistics::fills, "fills"},         counter{&statistics::drops, "drops"},
      counter{&statistics::evictions, "evictions"}, counter{&statistics::stale, "stale"},
      counter{&statistics::helped, "helped"},       counter{&statistics::switches, "mode_switches"}};

  // The counts since `before`; sizes stay.
  statistics& operator-=(const statistics& before) noexcept {
    for (std::size_t m = 0; m < lookups.size(); ++m) lookups[m] -= before.lookups[m];
    return subtract_counters(*this, before);
  }

  // Hits of the lookups that searched the cache, from 0 to 1; 0 if there were none.
  [[nodiscard]] double hit_ratio() const noexcept {
    const std::uint64_t all = hits + misses;
    return all == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(all);
  }
};

}  // namespace pmlab::cache
