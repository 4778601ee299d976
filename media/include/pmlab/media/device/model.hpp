// The cost of accesses to a memory device: the model is given times and returns times.
//
// One model for two clocks. It never reads a clock itself: `emulated` passes the real time, the simulator a virtual
// one. The same calls with the same times return the same results, to the picosecond.
//
// A thread's side                            A DIMM's side, shared by all threads
//   CPU cache: tags of the lines it holds      channel: one line at a time, each way
//   CPU translation buffer (page walks)        buffer: the granules used most recently; combines the lines written
//   lines read and not yet there               translation buffer: 4 KB entries
//   lines stored to and not yet there          media: busy for every granule read or written, however little of it
//   lines written back and not yet fenced
//
// Emergent, not built in: the price of small random accesses (a whole granule each), the fall of bandwidth with threads
// (lines arrive out of order, more granules are open than the buffer holds), the price of reading data that was just
// written back, interference of reads and writes.
//
// Two waits for the same instant are taken as the longer one, never as their sum.
//
// Not modelled: other cores' caches (a line that another core holds counts as read from the device),
// remote NUMA nodes, thermal limits.
#pragma once

#include <pmlab/media/device/buffer.hpp>
#include <pmlab/media/device/line_queue.hpp>
#include <pmlab/media/device/profile.hpp>
#include <pmlab/media/device/queue.hpp>
#include <pmlab/media/device/tags.hpp>
#include <pmlab/media/lines.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace pmlab::media {

// A time on the clock of the model, and differences of times. Integers, so that every machine rounds alike; 2^64 of
// them are 213 days.
using picoseconds = std::uint64_t;

[[nodiscard]] inline picoseconds to_picoseconds(double ns) noexcept {
  return static_cast<picoseconds>(std::llround(ns * 1000));
}

// A `line` is the address of the first byte of a cache line. Thread safety: any thread may call, each with a
// thread_state of its own; DIMMs are behind a lock of a few instructions.
class device_model {
 public:
  // The second-level translation buffer of the CPUs in servers that took Optane.
  static constexpr std::uint64_t page_bytes = std::uint64_t{2} << 20;
  static constexpr std::uint64_t page_entries = 1536;

  // The state of one thread. Not thread-safe.
  class thread_state {
   public:
    explicit thread_state(const device_profile& profile)
        : cache_(profile.cpu_cache_bytes / cache_line_bytes),
          pages_(profile.page_walk_ns > 0 ? page_entries : 0),
          reads_(profile.outstanding_reads),
          stores_(profile.outstanding_stores),
          flushes_(std::min(profile.outstanding_reads, profile.outstanding_writes)),
          writes_(profile.outstanding_writes) {}

   private:
    friend class device_model;
    struct slot {
      std::uint64_t line = 0;
      picoseconds done = 0;
    };
    // When the lines under way to a DIMM are accepted. A new line replaces the one that has waited longest.
    struct places {
      explicit places(std::uint64_t count) : taken(count) {}

      // Uses the next place; returns when the one after it is free.
      [[nodiscard]] picoseconds use(picoseconds until) noexcept {
        taken[next] = until;
        next = next + 1 == taken.size() ? 0 : next + 1;
        return taken[next];
      }

      std::vector<picoseconds> taken;
      std::size_t next = 0;
    };
    tag_cache cache_;
    tag_cache pages_;
    std::vector<slot> reads_;
    std::vector<slot> stores_;
    places flushes_;  // lines written back hold a place among the core's lines until then,
    places writes_;   // non-temporal stores one of the controller's
    std::size_t next_read_ = 0;
    std::size_t next_store_ = 0;
    std::uint64_t last_line_ = ~std::uint64_t{0};
    picoseconds last_done_ = 0;
    std::uint64_t walked_page_ = ~std::uint64_t{0};
    picoseconds walk_done_ = 0;
    picoseconds reads_done_ = 0;     // the latest of reads_ and stores_
    picoseconds accepted_ = 0;       // the latest line written since the last fence
    picoseconds next_ntstore_ = 0;   // a fenced batch of non-temporal stores may not start earlier
    picoseconds ntstore_start_ = 0;  // start of the batch that is open
    bool ntstores_open_ = false;
  };

  // `profile` has passed check_profile.
  explicit device_model(const device_profile& profile)
      : read_latency_(to_picoseconds(profile.read_latency_ns)),
        buffered_latency_(to_picoseconds(profile.buffered_read_latency_ns)),
        next_line_latency_(to_picoseconds(profile.next_line_read_latency_ns)),
        translation_miss_(to_picoseconds(profile.translation_miss_ns)),
        page_walk_(to_picoseconds(profile.page_walk_ns)),
        read_transfer_(to_picoseconds(profile.line_read_transfer_ns)),
        slow_read_(later_than(profile, profile.read_p99_ns)),
        slowest_read_(std::max(slow_read_, later_than(profile, profile.read_p99_9_ns))),
        write_transfer_(to_picoseconds(profile.line_write_transfer_ns)),
        flush_accept_(to_picoseconds(profile.flush_accept_ns)),
        ntstore_accept_(to_picoseconds(profile.ntstore_accept_ns)),
        ntstore_period_(to_picoseconds(profile.ntstore_fence_period_ns)),
        media_read_(to_picoseconds(profile.media_read_ns_per_granule)),
        media_write_(to_picoseconds(profile.media_write_ns_per_granule)),
        allowed_writes_(media_write_ * profile.write_queue_granules),
        granule_shift_(shift_of(profile.granule_bytes)),
        stripe_shift_(shift_of(profile.interleave_bytes)),
        ordered_reads_(media_read_ * profile.read_queue_granules),
        wear_move_(to_picoseconds(profile.wear_move_ns)),
        wear_writes_(profile.wear_writes),
        partial_bytes_(profile.partial_write_bytes),
        has_translation_(profile.translation_buffer_entries != 0),
        flush_drops_(profile.flush_drops_cached_line) {
    // The probability that a granule keeps its place while others take any of all places.
    const auto places = static_cast<double>(profile.buffer_granules);
    for (double kept = 1; granule_shift_ != 0 && kept > 1e-3; kept *= 1 - 1 / places) kept_.push_back(kept);
    if (kept_.empty()) kept_.push_back(1);
    dimms_.reserve(profile.dimms);
    for (std::uint64_t i = 0; i < profile.dimms; ++i) dimms_.push_back(std::make_unique<dimm>(profile));
  }

  // Changes nothing in the model; a later `cached` of this line takes the caller less time.
  void prepare(const thread_state& thread, std::uintptr_t line) const noexcept {
    thread.cache_.prefetch(line / cache_line_bytes);
  }

  // True if the CPU's cache holds the line and no access to it is under way: a read costs the CPU's time only.
  [[nodiscard]] bool cached(thread_state& thread, std::uintptr_t line, picoseconds now) const noexcept {
    return now >= thread.reads_done_ && thread.cache_.touch_if_present(line / cache_line_bytes);
  }

  // A read that begins at `now`. Returns when the data has arrived: `now` if the CPU's cache holds it. A caller that
  // depends on the data must wait until then; independent reads begin at the same time, or are prefetched.
  [[nodiscard]] picoseconds read(thread_state& thread, std::uintptr_t line, picoseconds now) noexcept {
    return read(thread, line, now, line / page_bytes);
  }

  // The same if the line's physical name differs from its address: `page` identifies its 2 MB page.
  [[nodiscard]] picoseconds read(thread_state& thread, std::uintptr_t line, picoseconds now,
                                 std::uint64_t page) noexcept {
    const std::uint64_t n = line / cache_line_bytes;
    const auto touched = thread.cache_.touch(n, false);
    if (touched.hit) return now < thread.reads_done_ ? std::max(now, under_way(thread, n)) : now;
    const picoseconds begin = touched.evicted_dirty ? evict(touched.evicted, now) : now;
    return fetch_into(thread, thread.reads_, thread.next_read_, n, begin, page).done;
  }

  // A read whose data is not needed yet, from `now`. Returns when the thread continues: later than `now` if too many
  // reads are under way. A later `read` of the same line waits only for the rest.
  [[nodiscard]] picoseconds prefetch(thread_state& thread, std::uintptr_t line, picoseconds now) noexcept {
    const std::uint64_t n = line / cache_line_bytes;
    const auto touched = thread.cache_.touch(n, false);
    if (touched.hit) return now;
    const picoseconds begin = touched.evicted_dirty ? evict(touched.evicted, now) : now;
    return fetch_into(thread, thread.reads_, thread.next_read_, n, begin, line / page_bytes).goes_on;
  }

  // A store that begins at `now`: a line that the CPU's cache does not hold is fetched first. Returns when the thread
  // continues, which is before the line has arrived unless too many stores wait.
  [[nodiscard]] picoseconds store(thread_state& thread, std::uintptr_t line, picoseconds now) noexcept {
    const std::uint64_t n = line / cache_line_bytes;
    const auto touched = thread.cache_.touch(n, true);
    if (touched.hit) return now;
    const picoseconds begin = touched.evicted_dirty ? evict(touched.evicted, now) : now;
    return fetch_into(thread, thread.stores_, thread.next_store_, n, begin, line / page_bytes).goes_on;
  }

  // clwb of a line that was stored to, at `now`. Returns when the thread continues: later than `now` if the device does
  // not keep up.
  [[nodiscard]] picoseconds write_back(thread_state& thread, std::uintptr_t line, picoseconds now) noexcept {
    const std::uint64_t n = line / cache_line_bytes;
    const picoseconds ready = now < thread.reads_done_ ? std::max(now, under_way(thread, n)) : now;
    thread.cache_.clean(n, flush_drops_);
    const picoseconds taken = deliver(thread, n, ready, flush_accept_);
    return std::max(now, goes_on(n, taken, thread.flushes_.use(taken)));
  }

  // Non-temporal store of `bytes` of a line at `now`. Returns as write_back. The memory controller writes whole lines:
  // it reads a line first of which it gets a part, and gets the part in pieces.
  [[nodiscard]] picoseconds write_around(thread_state& thread, std::uintptr_t line, picoseconds now,
                                         std::size_t bytes = cache_line_bytes) noexcept {
    const std::uint64_t n = line / cache_line_bytes;
    if (!thread.ntstores_open_) {
      thread.ntstores_open_ = true;
      thread.ntstore_start_ = std::max(now, thread.next_ntstore_);
    }
    thread.cache_.clean(n, true);
    picoseconds begin = std::max(now, thread.ntstore_start_);
    std::uint64_t more = 0;
    if (bytes < cache_line_bytes && partial_bytes_ != 0) {
      constexpr bool next_line = false;
      begin = fetch(n, begin, next_line);
      more = (bytes - 1) / partial_bytes_;
    }
    for (; more != 0; --more) static_cast<void>(deliver(thread, n, begin, ntstore_accept_));
    const picoseconds taken = deliver(thread, n, begin, ntstore_accept_);
    return std::max(now, goes_on(n, taken, thread.writes_.use(taken)));
  }

  // Waits for this thread's lines: returns when the device has accepted them all.
  [[nodiscard]] picoseconds fence(thread_state& thread, picoseconds now) noexcept {
    const picoseconds done = std::max(now, thread.accepted_);
    thread.accepted_ = 0;
    if (thread.ntstores_open_) {
      thread.ntstores_open_ = false;
      thread.next_ntstore_ = thread.ntstore_start_ + ntstore_period_;
    }
    return done;
  }

  // Granules that the media of all DIMMs have read and written: amplification is these times granule_bytes over the
  // bytes requested.
  struct media_work {
    std::uint64_t granules_read = 0;
    std::uint64_t granules_written = 0;
  };
  [[nodiscard]] media_work work() const noexcept {
    media_work sum;
    for (const auto& d : dimms_) {
      sum.granules_read += d->granules_read.load(std::memory_order_relaxed);
      sum.granules_written += d->granules_written.load(std::memory_order_relaxed);
    }
    return sum;
  }

 private:
  static constexpr std::uint64_t lines_per_entry = 4096 / cache_line_bytes;
  static constexpr std::uint64_t lines_per_wear_block = 65536 / cache_line_bytes;  // unit of wear levelling

  // One direction of a DIMM's link: a line at a time. A core runs ahead of its loads, so a request may be made for a
  // time that others have passed: it then waits for the lines that wait now, and not until the clock of those others.
  struct channel {
    picoseconds time = 0;     // the latest request
    picoseconds waiting = 0;  // time of the lines that are not through then

    // Returns how long the line waits.
    picoseconds take(picoseconds now, picoseconds transfer) noexcept {
      if (now > time) {
        waiting -= std::min(waiting, now - time);
        time = now;
      }
      const picoseconds wait = waiting;
      waiting += transfer;
      return wait;
    }
  };

  struct alignas(2 * cache_line_bytes) dimm {
    explicit dimm(const device_profile& profile)
        : media(profile.write_share),
          buffer(profile.buffer_granules),
          translations(profile.translation_buffer_entries) {}

    std::atomic<bool> busy{false};
    channel reads;
    channel writes;
    media_queue media;
    line_queue queue;
    xorshift64 chance;
    xorshift64 lateness;
    granule_buffer buffer;
    tag_cache translations;
    std::uint64_t translated_entry = ~std::uint64_t{0};
    picoseconds translation_done = 0;
    std::uint64_t worn_block = ~std::uint64_t{0};  // written more often than all others together
    std::uint64_t worn_writes = 0;
    picoseconds moved_at = 0;
    std::atomic<std::uint64_t> granules_read{0};
    std::atomic<std::uint64_t> granules_written{0};
  };

  // Held for tens of nanoseconds. On a virtual clock one thread runs at a time, and it is never contended.
  class dimm_lock {
   public:
    explicit dimm_lock(dimm& d) noexcept : dimm_(d) {
      while (dimm_.busy.exchange(true, std::memory_order_acquire))
        while (dimm_.busy.load(std::memory_order_relaxed)) __builtin_ia32_pause();
    }
    dimm_lock(const dimm_lock&) = delete;
    dimm_lock& operator=(const dimm_lock&) = delete;
    ~dimm_lock() { dimm_.busy.store(false, std::memory_order_release); }

   private:
    dimm& dimm_;
  };

  struct fetched {
    picoseconds goes_on;  // when the thread has a free slot again
    picoseconds done;     // when the line has arrived
  };

  // `bytes` is a power of two.
  [[nodiscard]] static unsigned shift_of(std::uint64_t bytes) noexcept {
    return static_cast<unsigned>(std::countr_zero(bytes / cache_line_bytes));
  }

  [[nodiscard]] std::size_t dimm_number(std::uint64_t n) const noexcept {
    return dimms_.size() == 1 ? 0 : (n >> stripe_shift_) % dimms_.size();
  }
  [[nodiscard]] dimm& dimm_of(std::uint64_t n) noexcept { return *dimms_[dimm_number(n)]; }

  [[nodiscard]] std::uint64_t bit_of(std::uint64_t n) const noexcept {
    return std::uint64_t{1} << (n & ((std::uint64_t{1} << granule_shift_) - 1));
  }

  // When the line that was requested earlier arrives; 0 if none is under way.
  [[nodiscard]] static picoseconds under_way(const thread_state& thread, std::uint64_t n) noexcept {
    picoseconds done = 0;
    for (const auto& s : thread.reads_)
      if (s.line == n) done = std::max(done, s.done);
    for (const auto& s : thread.stores_)
      if (s.line == n) done = std::max(done, s.done);
    return done;
  }

  // Takes the next of a thread's slots and fetches the line. A thread that waits until `goes_on` always finds its slot
  // free, so requests reach the DIMM in the order of their times.
  [[nodiscard]] fetched fetch_into(thread_state& thread, std::vector<thread_state::slot>& slots, std::size_t& next,
                                   std::uint64_t n, picoseconds now, std::uint64_t page) noexcept {
    auto& slot = slots[next];
    next = next + 1 == slots.size() ? 0 : next + 1;
    const picoseconds begin = std::max(now, slot.done);
    const bool next_line = n == thread.last_line_ + 1 && begin >= thread.last_done_;
    slot = {n, fetch(n, walked(thread, page, begin), next_line)};
    thread.last_line_ = n;
    thread.last_done_ = slot.done;
    thread.reads_done_ = std::max(thread.reads_done_, slot.done);
    return {std::max(begin, slots[next].done), slot.done};
  }

  // When the CPU has translated the address.
  [[nodiscard]] picoseconds walked(thread_state& thread, std::uint64_t page, picoseconds now) const noexcept {
    if (page_walk_ == 0) return now;
    if (!thread.pages_.touch(page, false).hit) {
      thread.walked_page_ = page;
      thread.walk_done_ = now + page_walk_;
    }
    return page == thread.walked_page_ ? std::max(now, thread.walk_done_) : now;
  }

  [[nodiscard]] picoseconds fetch(std::uint64_t n, picoseconds now, bool next_line) noexcept {
    const std::uint64_t granule = n >> granule_shift_;
    dimm& d = dimm_of(n);
    const dimm_lock lock(d);
    // Earlier writes are already in the DIMM's buffer.
    while (d.queue.due(now)) take_line(d);
    const picoseconds channel_wait = d.reads.take(now, read_transfer_);
    buffered_granule* entry = d.buffer.find(granule);
    if (entry != nullptr && (entry->valid & ~entry->written & bit_of(n)) != 0) {
      const picoseconds done = now + channel_wait + (next_line ? next_line_latency_ : buffered_latency_);
      if (entry->ready <= now) return done;
      // Once: all others of the granule wait for it by then.
      if (entry->settled || !lost(d, now)) {
        entry->settled = true;
        entry->ready += read_transfer_;
        return std::max(done, entry->ready);
      }
      entry->settled = true;
    } else if (entry != nullptr) {
      entry->settled = false;
    }
    if (entry == nullptr) entry = &open(d, granule, now);
    d.media.advance(now);
    const picoseconds wait = std::max(channel_wait, d.media.add_read(media_read_));
    d.granules_read.fetch_add(1, std::memory_order_relaxed);
    const picoseconds latency = next_line && granule_shift_ == 0 ? next_line_latency_ : read_latency_;
    entry->ready = translated(d, n, now) + wait + latency + late_by(d);
    entry->valid = ~std::uint64_t{0};
    entry->written = 0;
    return entry->ready;
  }

  [[nodiscard]] static picoseconds later_than(const device_profile& profile, double percentile_ns) noexcept {
    return percentile_ns > profile.read_latency_ns ? to_picoseconds(percentile_ns - profile.read_latency_ns) : 0;
  }

  // The tail of reads: some of them take longer, and others are not held up. A few more than 1 in 100 are late, and
  // than 1 in 1000 very late, so that the percentiles are theirs.
  [[nodiscard]] picoseconds late_by(dimm& d) const noexcept {
    if (slowest_read_ == 0) return 0;
    constexpr double late = 0.012;
    constexpr double very_late = 0.0012;
    const double drawn = d.lateness.unit();
    return drawn < very_late ? slowest_read_ : drawn < late ? slow_read_ : 0;
  }

  // Whether a granule that is on its way to the buffer is evicted again before the line's turn. Waiting reads hold
  // places of the buffer; those beyond the ones that the DIMM has in order take any place. While the media writes,
  // reads wait longer for it than for each other, and all lines of a granule have arrived by its turn.
  [[nodiscard]] bool lost(dimm& d, picoseconds now) const noexcept {
    d.media.advance(now);
    const picoseconds waiting = d.media.reads_waiting();
    if (waiting <= ordered_reads_ || d.media.writes_waiting() != 0) return false;
    const std::uint64_t places = (waiting - ordered_reads_) / media_read_;
    return d.chance.unit() >= kept_[std::min<std::uint64_t>(places, kept_.size() - 1)];
  }

  // When the DIMM has translated the line's address to its media.
  [[nodiscard]] picoseconds translated(dimm& d, std::uint64_t n, picoseconds now) const noexcept {
    if (!has_translation_) return now;
    const std::uint64_t entry = n / lines_per_entry;
    if (!d.translations.touch(entry, false).hit) {
      d.translated_entry = entry;
      d.translation_done = now + translation_miss_;
    }
    return entry == d.translated_entry ? std::max(now, d.translation_done) : now;
  }

  // Makes room in the buffer for a granule.
  [[nodiscard]] buffered_granule& open(dimm& d, std::uint64_t granule, picoseconds now) noexcept {
    bool evicted_dirty = false;
    buffered_granule& entry = d.buffer.insert(granule, evicted_dirty);
    if (evicted_dirty) {
      d.media.advance(now);
      d.media.add_write(media_write_);
      d.granules_written.fetch_add(1, std::memory_order_relaxed);
    }
    return entry;
  }

  // A line arrives at its DIMM. Returns how long it waits until it is taken.
  [[nodiscard]] picoseconds arrive(std::uint64_t n, picoseconds now) noexcept {
    dimm& d = dimm_of(n);
    const dimm_lock lock(d);
    // Lines that have waited enter the buffer in random order.
    while (d.queue.due(now) || d.queue.full()) take_line(d);
    d.media.advance(now);
    const picoseconds wait =
        std::max({d.writes.take(now, write_transfer_), d.media.until_writes_at_most(allowed_writes_), worn(d, n, now)});
    d.queue.add(n, now + wait);
    return wait;
  }

  // A line that has waited is merged with the others of its granule, at the time of its turn: the DIMM continues to
  // work between requests.
  void take_line(dimm& d) noexcept {
    const picoseconds now = d.queue.next_due();
    const std::uint64_t n = d.queue.take_any();
    const std::uint64_t granule = n >> granule_shift_;
    buffered_granule* entry = d.buffer.find(granule);
    if (entry == nullptr) entry = &open(d, granule, now);
    entry->valid |= bit_of(n);
    entry->written |= bit_of(n);
    entry->dirty = true;
  }

  // How long a line waits because the media under it is being moved by wear levelling: lines that are written much more
  // often than all others together wear out.
  [[nodiscard]] picoseconds worn(dimm& d, std::uint64_t n, picoseconds now) const noexcept {
    if (wear_move_ == 0) return 0;
    const std::uint64_t block = n / lines_per_wear_block;
    if (block == d.worn_block) {
      if (++d.worn_writes >= wear_writes_) {
        d.worn_writes = 0;
        d.moved_at = now + wear_move_;
      }
      return d.moved_at > now ? d.moved_at - now : 0;
    }
    if (d.worn_writes != 0) {
      --d.worn_writes;
    } else {
      d.worn_block = block;
      d.worn_writes = 1;
      d.moved_at = 0;
    }
    return 0;
  }

  // When a thread continues after line `n`, which its DIMM accepts at `taken`, if its next place is free at `place`.
  // Lines of one thread are sent to one DIMM at a time [fit]: threads that write in order then follow each other from
  // DIMM to DIMM; with lines at two of them at once they would gather at one and leave the others idle.
  [[nodiscard]] picoseconds goes_on(std::uint64_t n, picoseconds taken, picoseconds place) const noexcept {
    return dimm_number(n + 1) == dimm_number(n) ? place : taken;
  }

  // The CPU's cache gives a dirty line away. Returns when it is gone.
  [[nodiscard]] picoseconds evict(std::uint64_t n, picoseconds now) noexcept { return now + arrive(n, now); }

  // A line leaves the thread for its DIMM at `begin`. Returns when the DIMM accepts it.
  [[nodiscard]] picoseconds deliver(thread_state& thread, std::uint64_t n, picoseconds begin,
                                    picoseconds accept) noexcept {
    const picoseconds taken = begin + arrive(n, begin);
    thread.accepted_ = std::max(thread.accepted_, taken + accept);
    return taken;
  }

  picoseconds read_latency_;
  picoseconds buffered_latency_;
  picoseconds next_line_latency_;
  picoseconds translation_miss_;
  picoseconds page_walk_;
  picoseconds read_transfer_;
  picoseconds slow_read_;     // more than read_latency_, of a read that is late
  picoseconds slowest_read_;  // a read that is very late
  picoseconds write_transfer_;
  picoseconds flush_accept_;
  picoseconds ntstore_accept_;
  picoseconds ntstore_period_;
  picoseconds media_read_;
  picoseconds media_write_;
  picoseconds allowed_writes_;
  unsigned granule_shift_;     // lines to granules
  unsigned stripe_shift_;      // lines to units of interleaving
  picoseconds ordered_reads_;  // media time of the reads that lose nothing of the buffer
  picoseconds wear_move_;
  std::uint64_t wear_writes_;
  std::uint64_t partial_bytes_;
  bool has_translation_;
  bool flush_drops_;
  std::vector<double> kept_;
  std::vector<std::unique_ptr<dimm>> dimms_;
};

}  // namespace pmlab::media
