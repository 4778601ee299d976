// The options and figures of a cache of pairs.
#pragma once

#include <pmlab/cache/eviction/chosen.hpp>

#include <cstdint>

namespace pmlab::stores {

// Fixed when the cache is made.
struct kv_cache_options {
  std::uint64_t bytes = 0;                       // bytes of DRAM, for pairs and tables; 0: nothing is cached
  cache::eviction evict = cache::eviction::lru;  // chooses the pair that makes room
  unsigned shards = 16;                          // at most; each has at least 64 KiB
};

// Since the cache was made. Exact when no operation runs.
struct kv_cache_stats {
  std::uint64_t hits = 0;       // reads that the cache answered
  std::uint64_t misses = 0;     // reads that the store answered
  std::uint64_t fills = 0;      // pairs that entered after a read
  std::uint64_t updates = 0;    // pairs whose new value a put left here
  std::uint64_t evictions = 0;  // pairs that made room
  std::uint64_t stale = 0;      // results of reads that were not kept: a change of a neighbour was under way
  std::uint64_t pairs = 0;      // now
  std::uint64_t bytes = 0;      // now, with the tables; at most those of the options

  // Hits of all reads, from 0 to 1; 0 if there were none.
  [[nodiscard]] double hit_ratio() const noexcept {
    const std::uint64_t all = hits + misses;
    return all == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(all);
  }
};

}  // namespace pmlab::stores
