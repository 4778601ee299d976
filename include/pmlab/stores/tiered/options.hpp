// Options of a tiered store, and its figures.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/stores/tiered/layout.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

namespace pmlab::stores {

// What a crash may take: changes acknowledged less than `at_most` before it. A flush begins when the oldest change that is
// not durable is half as old, or when `or_bytes` are not durable; so the bound holds while a flush takes no longer than
// the other half. Writers wait when twice `or_bytes` are not durable.
struct loss_bound {
  std::chrono::nanoseconds at_most = std::chrono::milliseconds(100);  // 10 us to 1 h
  std::uint64_t or_bytes = std::uint64_t{8} << 20;                    // at least 1
};

// The drive that holds log, keys and values. (Policies that spread a store over both drives need leaves: not there yet.)
enum class placement : std::uint8_t { staging_only, capacity_only };

// Of tiered::open. Sizes of areas are chosen when a store is made; a store that is opened again has those it was made
// with, and the placement too.
struct tiered_options {
  loss_bound loss{};                                    // may differ from opening to opening
  placement place = placement::staging_only;            // of everything but the other drive's header
  std::uint64_t memory_limit = std::uint64_t{2} << 30;  // DRAM for changes, fences and filters; at least 16 KiB
  bool background = true;       // threads of its own flush and ingest; false: step() and writers
  std::uint32_t most_sets = 8;  // of the root; more are merged into one
  std::uint64_t segment_bytes = std::uint64_t{4} << 20;   // a multiple of a page; the longest batch
  std::uint64_t manifest_bytes = std::uint64_t{4} << 20;  // of each of two areas
  std::uint32_t page_bytes = 4096;                        // of keys; a multiple of a block
  bool format = false;                                    // makes an empty store on drives that hold something else
  std::array<std::uint64_t, 2> identity{};                // of the new store; zeros: chosen at random
};

// Figures of a store at one moment.
struct tiered_stats {
  std::uint64_t sequence = 0;        // of the newest change; each change has one, from 1
  std::uint64_t durable = 0;         // changes up to this sequence are durable
  std::uint64_t dirty_bytes = 0;     // of the log that are not durable yet
  std::uint64_t memory_bytes = 0;    // of the limit
  std::uint64_t sets = 0;            // in the root
  std::uint64_t entries = 0;         // versions in these
  std::uint64_t segments = 0;        // of the log class
  std::uint64_t free_segments = 0;   // of these
  std::uint64_t log_segments = 0;    // that replay would read
  std::uint64_t ingests = 0;         // since it was opened
  std::uint64_t merges = 0;          // likewise
  std::string background_failure{};  // the last failure of a thread of the store; empty: its last work succeeded
};

// The log class, or the memory limit, has no room for a change. Nothing changed; reading goes on, and writing when keys
// are erased and `compact` finds segments that nothing refers to.
class tiered_full : public error {
 public:
  using error::error;
};

namespace detail::tiered {

// Throws pmlab::error for options that no store can have. `block_bytes`: of the log class.
inline void check_options(const tiered_options& o, std::uint32_t block_bytes) {
  using namespace std::chrono_literals;
  if (o.loss.at_most == 0ns)
    throw error("a loss of at most 0 ms", "use put_synced or sync for changes that must be durable at once");
  if (o.loss.at_most < 10us || o.loss.at_most > 1h)
    throw error("a loss bound of " + std::to_string(o.loss.at_most.count()) + " ns", "choose 10 us to 1 h");
  if (o.loss.or_bytes == 0) throw error("a loss bound of 0 bytes", "choose at least 1");
  if (o.memory_limit < 16384)
    throw error("a memory limit of " + std::to_string(o.memory_limit) + " bytes", "choose at least 16 KiB");
  if (o.most_sets == 0) throw error("a root of no sets", "choose at least 1");
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
