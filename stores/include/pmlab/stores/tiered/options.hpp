// Options of a tiered store, and its figures.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/stores/tiered/layout.hpp>
#include <pmlab/stores/tiered/placement.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

namespace pmlab::stores {

// What a crash may take: changes acknowledged less than `at_most` before it. A flush begins when the oldest change that
// is not durable is half as old, or when `or_bytes` are not durable. Where the flusher gets too little of a processor,
// a writer flushes when it is five eighths as old. So the bound holds while a flush takes no longer than the rest, and
// a thread that makes changes, or the flusher, runs; `tiered_stats::late_flushes` counts those that took longer. A
// flusher that loses its processor in the middle of a flush makes that one longer. Writers wait when twice `or_bytes`
// are not durable.
struct loss_bound {
  std::chrono::nanoseconds at_most = std::chrono::milliseconds(100);  // 10 us to 1 h
  std::uint64_t or_bytes = std::uint64_t{8} << 20;                    // at least 1
};

// Options of tiered::open. Sizes of areas are chosen when a store is made; a store that is opened again has those it
// was made with, and the placement too.
struct tiered_options {
  loss_bound loss{};                                    // may differ from opening to opening
  placement place = placement::staging_max_capacity;    // capacity_only for a store on one drive
  std::uint64_t memory_limit = std::uint64_t{2} << 30;  // DRAM for changes, fences and filters; at least 16 KiB
  bool background = true;              // threads of its own flush and ingest; false: step() and writers
  std::uint32_t most_sets = 8;         // sets of the root; more are spilled into the leaves
  std::uint32_t most_leaf_sets = 3;    // sets of a leaf; more are merged into one
  std::uint64_t leaf_bytes = 0;        // bytes of keys and values; leaves twice as large are split. 0: 16 segments
  std::uint32_t garbage_percent = 33;  // a segment of values with so much garbage is given up
  std::uint64_t segment_bytes = std::uint64_t{4} << 20;   // a multiple of a page; the longest batch
  std::uint64_t manifest_bytes = std::uint64_t{4} << 20;  // bytes of each of two areas; at least 512, and 16 a segment
  std::uint32_t page_bytes = 4096;                        // bytes of a page of keys; a multiple of a block
  std::uint64_t cache_bytes = 0;     // part of the memory limit for pages and values that were read; 0: none
  std::uint64_t memtable_bytes = 0;  // bytes of persistent memory, before a memtable becomes a set; 0: a fifth of it
  bool format = false;               // makes an empty store on drives that hold something else
  bool read_only = false;            // opens a damaged store as far as it can be read, and writes nothing
  std::array<std::uint64_t, 2> identity{};  // identity of the new store; zeros: chosen at random
};

// Figures of a store at one moment.
struct tiered_stats {
  std::uint64_t sequence = 0;             // sequence of the newest change; each change has one, from 1
  std::uint64_t durable = 0;              // changes up to this sequence are durable
  std::uint64_t dirty_bytes = 0;          // bytes of the log that are not durable yet
  std::uint64_t memory_bytes = 0;         // bytes of the limit that are in use
  std::uint64_t medium_bytes = 0;         // bytes of persistent memory in use, by all of its users; 0 without
  std::uint64_t sets = 0;                 // in the root
  std::uint64_t leaves = 0;               // key ranges
  std::uint64_t leaf_sets = 0;            // in all leaves
  std::uint64_t entries = 0;              // versions in all sets
  std::uint64_t value_bytes = 0;          // that these refer to; versions that are replaced are some of them
  std::uint64_t segments = 0;             // segments of both drives
  std::uint64_t free_segments = 0;        // free ones of these
  std::uint64_t staging_used_bytes = 0;   // segments that are not free
  std::uint64_t capacity_used_bytes = 0;  // likewise
  std::uint64_t late_flushes = 0;         // flushes of any thread that end when a change is older than the loss bound
  std::chrono::nanoseconds longest_loss{0};  // since it was opened: the greatest age of a change that became durable
  std::uint64_t log_segments = 0;            // that replay would read
  std::uint64_t snapshots = 0;               // that are held
  std::uint64_t ingests = 0;                 // ingests of memtables into the root, since the store was opened
  std::uint64_t spills = 0;                  // spills of root sets into the leaves, likewise
  std::uint64_t compactions = 0;             // compactions of leaves, likewise
  std::uint64_t splits = 0;                  // leaves that were added, likewise
  std::uint64_t spilled_value_bytes = 0;     // that spills have copied, likewise
  std::uint64_t compacted_value_bytes = 0;   // that compactions have copied, likewise
  std::uint64_t page_hits = 0;               // page hits of the cache, since the store was opened
  std::uint64_t page_misses = 0;             // likewise
  std::uint64_t value_hits = 0;              // likewise
  std::uint64_t value_misses = 0;            // likewise
  std::uint64_t cached_bytes = 0;            // bytes of these in the cache
  std::string background_failure{};  // the last failure of a thread of the store; empty: none since it was opened
};

// The drives, or the memory limit, have no room for a change. Nothing changed; reading goes on, and writing when keys
// are erased and `compact` finds segments that nothing refers to.
class tiered_full : public error {
 public:
  using error::error;
};

namespace detail::tiered {

// Throws pmlab::error for options that no store can have. `block_bytes`: of the log class. `has_memory`: nothing is
// ever lost, so the bound may be 0.
inline void check_options(const tiered_options& o, std::uint32_t block_bytes, bool has_memory = false) {
  using namespace std::chrono_literals;
  if (o.loss.at_most == 0ns && !has_memory)
    throw error("a loss of at most 0 ms without persistent memory",
                "use put_synced or sync for changes that must be durable at once, or give the store memory");
  if ((o.loss.at_most < 10us && !has_memory) || o.loss.at_most > 1h)
    throw error("a loss bound of " + std::to_string(o.loss.at_most.count()) + " ns", "choose 10 us to 1 h");
  if (o.loss.or_bytes == 0) throw error("a loss bound of 0 bytes", "choose at least 1");
  if (o.memory_limit < 16384)
    throw error("a memory limit of " + std::to_string(o.memory_limit) + " bytes", "choose at least 16 KiB");
  if (o.cache_bytes > o.memory_limit - 16384)
    throw error(
        "a cache of " + std::to_string(o.cache_bytes) + " bytes in a memory limit of " + std::to_string(o.memory_limit),
        "leave at least 16 KiB of the limit to changes");
  if (o.most_sets == 0) throw error("a root of no sets", "choose at least 1");
  if (o.most_leaf_sets == 0) throw error("leaves of no sets", "choose at least 1");
  if (o.garbage_percent == 0 || o.garbage_percent > 100)
    throw error("segments with " + std::to_string(o.garbage_percent) + " percent of garbage", "choose 1 to 100");
  if (o.read_only && o.format)
    throw error("a store that is formatted and opened to be read only", "choose one of `format` and `read_only`");
  if (o.page_bytes < 512 || o.page_bytes > 65536 || o.page_bytes % block_bytes != 0)
    throw error("pages of " + std::to_string(o.page_bytes) + " bytes on blocks of " + std::to_string(block_bytes),
                "choose a multiple of a block, 512 to 65536");
  if (o.segment_bytes < 2 * std::uint64_t{o.page_bytes} || o.segment_bytes > (std::uint64_t{1} << 31) ||
      o.segment_bytes % o.page_bytes != 0)
    throw error("segments of " + std::to_string(o.segment_bytes) + " bytes",
                "choose a multiple of the page size, from two pages to 2 GiB");
  if (o.manifest_bytes < 512 || o.manifest_bytes % block_bytes != 0 || o.manifest_bytes > (std::uint64_t{1} << 31))
    throw error("manifests of " + std::to_string(o.manifest_bytes) + " bytes",
                "choose a multiple of a block, up to 2 GiB");
}

}  // namespace detail::tiered
}  // namespace pmlab::stores
