// The cost of a publication: failure-atomic allocation, release and stores as libpmemobj makes them.
//
// The simulated medium publishes atomically and its allocator keeps its data outside of the simulated memory. A pool
// pays for both in flushes and fences: as many as pmemobj_xreserve + pmemobj_publish, traced at the calls of libpmem
// (PMDK 1.12; checker/tests/simulator/time_publication_test.cpp has the traces):
//
//   per allocated block    its header, one line, around the caches
//   fence
//   one stored word alone: store, flush, fence, flush, fence; otherwise:
//   redo log of the lane   one line + 16 bytes for each change + 8, around the caches; fence
//   per change             stored word, or bitmap of the run that the block lies in: store, flush
//   fence
//   redo log               its first line again, around the caches; fence
#pragma once

#include "checker/simulator/time/memory_hierarchy.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace pmlab::simulator {

struct published_change {
  enum class kind : std::uint8_t { allocate, store, release };
  kind what;
  std::uintptr_t address;  // address of the block, or of the word
};

namespace detail {

// The pool's own lines, beside everything that a program can address: headers of blocks, bitmaps of runs, redo logs.
inline constexpr std::uintptr_t header_of_blocks = std::uintptr_t{1} << 56;
inline constexpr std::uintptr_t bitmap_of_runs = std::uintptr_t{2} << 56;
inline constexpr std::uintptr_t redo_logs = std::uintptr_t{3} << 56;
inline constexpr std::uintptr_t run_bytes = std::uintptr_t{256} << 10;

// The library's own work, measured without flushes on DRAM: locks, size classes, checksums.
inline constexpr picoseconds work_of_publication = 60'000;
inline constexpr picoseconds work_of_change = 50'000;
inline constexpr picoseconds work_of_block = 200'000;

}  // namespace detail

// Lines of the redo log that a publication of `changes` changes writes.
[[nodiscard]] constexpr std::size_t redo_log_lines(std::size_t changes) noexcept {
  return 1 + (16 * changes + 8 + media::cache_line_bytes - 1) / media::cache_line_bytes;
}

// A publication of `changes` by `core` that begins at `now`, from the first allocation to the end of the commit.
// Returns when the core continues.
[[nodiscard]] inline picoseconds publish(memory_hierarchy& memory, unsigned core,
                                         std::span<const published_change> changes, picoseconds now) {
  using kind = published_change::kind;
  if (changes.empty()) return now;
  now += detail::work_of_publication + detail::work_of_change * changes.size();
  for (const published_change& c : changes) {
    if (c.what != kind::allocate) continue;
    now += detail::work_of_block;
    now = memory.write_around(core, detail::header_of_blocks + c.address, media::cache_line_bytes, true, now);
  }
  now = memory.fence(core, now);
  const auto apply = [&](const published_change& c) {
    std::uintptr_t word = c.address;
    if (c.what != kind::store) {
      // Bits are set in the existing bitmap.
      word = detail::bitmap_of_runs + c.address / detail::run_bytes * detail::run_bytes;
      now = memory.load(core, word, sizeof(std::uint64_t), true, now);
    }
    now = memory.store(core, word, sizeof(std::uint64_t), true, now);
    now = memory.flush(core, word, now);
  };
  if (changes.size() == 1) {
    apply(changes[0]);
    now = memory.fence(core, now);
    return memory.fence(core, memory.flush(core, changes[0].address, now));
  }
  const std::uintptr_t log = detail::redo_logs + core * std::uintptr_t{4096};
  now = memory.write_around(core, log, redo_log_lines(changes.size()) * media::cache_line_bytes, true, now);
  now = memory.fence(core, now);
  for (const published_change& c : changes) apply(c);
  now = memory.fence(core, now);
  return memory.fence(core, memory.write_around(core, log, media::cache_line_bytes, true, now));
}

}  // namespace pmlab::simulator
