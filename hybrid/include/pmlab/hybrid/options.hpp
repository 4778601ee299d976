// Options of a hybrid index.
#pragma once

#include <pmlab/base/counters.hpp>
#include <pmlab/sync/run_in_parallel.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pmlab::hybrid {

// Which half is the durable one that answers for the data. The other one is its replica.
enum class primary : std::uint8_t {
  hash,  // HybridIndex
  tree,  // HybridIndex+
};

// When the replica changes.
enum class update : std::uint8_t {
  synchronous,   // before the operation answers
  asynchronous,  // soon after: a background thread takes changes from a queue, many at a time
  adaptive,      // the one or the other, by the share of writes among the operations
};
// The names as users write them, in the order of the enumerators.
inline constexpr std::array<std::string_view, 3> update_names = {"sync", "async", "adaptive"};
// The name as users write it.
[[nodiscard]] constexpr std::string_view to_string(update u) noexcept {
  return update_names[static_cast<std::size_t>(u)];
}

// What a scan sees of a tree that is the replica.
enum class scans : std::uint8_t {
  fresh,     // every operation that returned, or whose effect was seen by any thread, before it began
  stale_ok,  // all but the last few changes of each queue
};
// The names as users write them, in the order of the enumerators.
inline constexpr std::array<std::string_view, 2> scan_names = {"fresh", "stale_ok"};

// The defaults fit most uses; docs/hybrid.md has the exceptions.
struct options {
  update how = update::asynchronous;  // when the replica changes

  scans scan = scans::fresh;  // what a scan sees, if the tree is the replica
  // stale_ok: changes of a queue that a scan may miss.
  std::uint64_t stale_bound = 1024;

  // Threads that change the replica. 0: none; a writer that finds a queue full, or a scan, does it.
  unsigned updaters = 1;
  // Queues that they share. As many threads, updaters and writers that wait, can change the replica at a time.
  unsigned queues = 8;
  // Changes that may wait in each queue: the next power of two, at most 2^19. Writers that find it full wait, and help.
  std::size_t queue = 1024;
  // Changes that an updater takes, sorts and applies at a time, at most 2^19.
  std::size_t batch = 128;
  // How long an updater rests that has found nothing to do.
  std::chrono::microseconds rest{50};

  // A power of two: keys that share a stripe exclude each other's writers. 8 bytes each.
  std::size_t stripes = std::size_t{1} << 14;

  // Threads that rebuild the replica. 0: `open` does it itself, before it returns.
  unsigned rebuilders = sync::recovery_threads();

  // Adaptive: the mode is decided again after so many operations. Writes among them above the one share: asynchronous;
  // below the other: synchronous; between: unchanged.
  std::uint32_t window = 8192;
  double asynchronous_above = 0.7;  // share of writes, from 0 to 1
  double synchronous_below = 0.4;   // the same

  // Root of the primary in its medium, 1 to 21 characters, and NAME:c of the replica; used by `open` only. Empty: each
  // half has its layout's name. So a medium can hold several hybrid indexes.
  std::string_view name{};
};

// Counted since the index was opened. Exact when nothing runs.
struct statistics {
  std::uint64_t queued = 0;              // changes that passed through a queue
  std::uint64_t waiting = 0;             // changes that wait there now
  std::uint64_t deepest = 0;             // most changes in one queue when an updater arrived
  std::uint64_t batches = 0;             // groups of changes that were applied together
  std::uint64_t merged = 0;              // changes that a later one of the same batch and key made needless
  std::uint64_t writer_waits = 0;        // times that a writer found its queue full
  std::uint64_t scan_waits = 0;          // times that a scan had to wait for a queue
  std::uint64_t longest_lag_ns = 0;      // the longest observed wait of a change, sampled once per queue at a time
  std::uint64_t switches = 0;            // adaptive: how often it has changed its mind
  bool asynchronous = false;             // how changes are made now
  bool complete = false;                 // the replica holds all that the primary holds
  std::uint64_t refused_by_replica = 0;  // changes for which the replica had no space
  std::uint64_t rebuilt = 0;             // entries of the last rebuild
  std::uint64_t ready_ns = 0;            // time of `open`: from then on operations are taken
  std::uint64_t rebuild_ns = 0;          // time of the last rebuild, until the replica was complete

  // The counts that `operator-=` subtracts, in the order of results.
  static constexpr std::array counters{
      counter{&statistics::queued, "queued"},         counter{&statistics::batches, "batches"},
      counter{&statistics::merged, "merged"},         counter{&statistics::writer_waits, "writer_waits"},
      counter{&statistics::scan_waits, "scan_waits"}, counter{&statistics::refused_by_replica, "refused_by_copy"},
      counter{&statistics::switches, "mode_switches"}};

  // The counts since `before`; other members are unchanged.
  statistics& operator-=(const statistics& before) noexcept { return subtract_counters(*this, before); }
};

}  // namespace pmlab::hybrid
