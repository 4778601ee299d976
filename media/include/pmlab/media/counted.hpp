// A medium that counts accesses: its figures do not depend on the machine.
//
// Use it to measure the lines that an operation of an index reads and writes, and to test that it stays at the floor of
// its design. The wrapped medium does all the work; `counted<dram>` and `counted<pmem>` return the same figures for the
// same calls.
//
// Counted are the calls of the index: its annotated reads, flushes, copies and fences. Not counted are accesses that an
// index does not annotate, and the allocator's work inside a publication: libpmemobj writes and flushes its own logs
// and metadata, on lines that no call names. `publications` counts the transactions, so that a reader of a table can
// account for that cost.
#pragma once

#include <pmlab/base/counters.hpp>
#include <pmlab/base/thread_blocks.hpp>
#include <pmlab/media/counts.hpp>
#include <pmlab/media/line_set.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/media/persistence_domain.hpp>
#include <pmlab/media/wrapper.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace pmlab::media {

// Thread safety: as the inner medium; each thread counts for itself, in memory that no other thread writes.
// Counting allocates (a set of lines per thread, which grows to the largest operation); if that fails, the program
// ends.
template <class Inner>
class counted : public wrapper<Inner> {
 public:
  static constexpr optional_parts parts{
      .operations = true, .prefetches = true, .pointer_bound = Inner::parts.pointer_bound};

  // `arguments` build the inner medium.
  template <class... Arguments>
  explicit counted(Arguments&&... arguments)
      : wrapper<Inner>(std::in_place, std::forward<Arguments>(arguments)...),
        persistence_(persistence_of(this->inner())) {}
  // Counts as on a platform that saves `persistence`: where it saves the caches, flushes are left out and not counted.
  // The inner medium decides for itself whether it flushes.
  template <class... Arguments>
  explicit counted(persistence_domain persistence, Arguments&&... arguments)
      : wrapper<Inner>(std::in_place, std::forward<Arguments>(arguments)...), persistence_(persistence) {}
  // What the platform that it counts for saves.
  [[nodiscard]] persistence_domain persistence() const noexcept { return persistence_; }

  class publication : public Inner::publication {
   public:
    // Nothing happens yet. `medium` outlives it.
    explicit publication(counted& medium) noexcept(noexcept(typename Inner::publication(medium.inner())))
        : Inner::publication(medium.inner()), medium_(medium) {}

    // In DRAM where a block begins within a device line is the allocator's chance, another one in each run: blocks of a
    // device line and more begin at one. In a pool it is the same in each run.
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
      if constexpr (!Inner::durable)
        if (bytes >= xpline_bytes) alignment = std::max<std::size_t>(alignment, xpline_bytes);
      return Inner::publication::allocate(bytes, alignment);
    }

    void commit() {
      Inner::publication::commit();
      medium_.block().add(&counts::publications, 1);
    }

   private:
    counted& medium_;
  };

  // A new operation of this thread begins: its reads count as first reads.
  void begin_operation() {
    thread_block& mine = block();
    mine.add(&counts::operations, 1);
    mine.read.clear();
    mine.device_read.clear();
    this->inner_begin_operation();
  }
  // The operation ends. Counts nothing.
  void end_operation() { this->inner_end_operation(); }

  void annotate_read(const void* start, std::size_t bytes) noexcept {
    count_read(start, bytes);
    this->inner().annotate_read(start, bytes);
  }

  // A read that a later annotate_read waits for. It is counted once.
  void prefetch(const void* start, std::size_t bytes) noexcept {
    count_read(start, bytes);
    this->inner_prefetch(start, bytes);
  }

  void flush(const void* start, std::size_t bytes) noexcept {
    if (!keeps_caches(persistence_)) count_written(start, bytes, &counts::lines_flushed);
    this->inner().flush(start, bytes);
  }

  void copy(void* target, const void* source, std::size_t bytes) noexcept {
    count_written(target, bytes, &counts::lines_copied);
    this->inner().copy(target, source, bytes);
  }

  void fence() noexcept {
    thread_block& mine = block();
    mine.add(&counts::fences, 1);
    mine.device_written.clear();
    this->inner().fence();
  }

  // Sums over all threads, ended ones included, since construction or the last reset. Exact for threads that were
  // joined; may lag a few events behind running threads.
  [[nodiscard]] counts total() const {
    const std::scoped_lock lock(mutex_);
    counts all = sum();
    return subtract_counters(all, base_);
  }

  // Restarts counting from zero. The line sets of an operation under way are kept.
  void reset() {
    const std::scoped_lock lock(mutex_);
    base_ = sum();
  }

 private:
  struct alignas(2 * cache_line_bytes) thread_block {
    // One thread adds, any thread reads: no atomic addition is needed.
    void add(std::uint64_t counts::*which, std::uint64_t amount) noexcept { counters.add_alone(which, amount); }

    shared_counters<counts> counters;
    line_set read;
    line_set device_read;
    line_set device_written;
  };

  [[nodiscard]] thread_block& block() {
    return blocks_.local([](std::size_t) { return std::make_unique<thread_block>(); });
  }

  [[nodiscard]] counts sum() const {
    counts all;
    blocks_.for_each([&all](const thread_block& b) { all += b.counters.now(); });
    return all;
  }

  void count_read(const void* start, std::size_t bytes) {
    thread_block& mine = block();
    for_each_line(start, bytes, [&mine](std::uintptr_t line) {
      if (!mine.read.insert(line / cache_line_bytes)) return;
      mine.add(&counts::lines_read, 1);
      if (mine.device_read.insert(line / xpline_bytes)) mine.add(&counts::device_lines_read, 1);
    });
  }

  void count_written(const void* start, std::size_t bytes, std::uint64_t counts::*lines) {
    thread_block& mine = block();
    for_each_line(start, bytes, [&mine, lines](std::uintptr_t line) {
      mine.add(lines, 1);
      if (mine.device_written.insert(line / xpline_bytes)) mine.add(&counts::device_lines_written, 1);
    });
  }

  persistence_domain persistence_;
  thread_blocks<thread_block> blocks_;
  mutable std::mutex mutex_;
  counts base_;
};

}  // namespace pmlab::media
