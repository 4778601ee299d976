// The memory of a simulated machine with many cores: caches, coherence, DRAM and a persistent memory device.
//
// It is given times and returns times, and never reads a clock. The same calls with the same times return the same
// results to the picosecond, on any machine and wherever the kernel placed the memory (time/page_frames.hpp).
//
//   core: first level (32 KiB), second level (1 MiB), loads and stores under way      time/first_level_cache.hpp
//   all:  last level: the profile's cpu_cache_bytes beyond the second level,          time/cache_tags.hpp
//         as often as there are cores; receives lines evicted from the second levels
//   line: who holds it, who may store to it, when it is free to move on               time/line_directory.hpp
//   DRAM and device: media/device/model.hpp, without the cache that it would have of its own
//   host: of several, each has cores, a last level and DRAM of its own, and they share the device. A line that is not
//         coherent between them is another line in each, with one place on the device. A coherent one has one state:
//         what another host has modified, or has where a store needs it alone, comes by way of the device.
//
// Emergent, not built in: the price of hot locks and shared counters, of reading data that was just flushed, of
// metadata that shares a line with data.
//
// Two waits at the same time count as the longer one, never the sum. A load waits for its data, but loads close to each
// other overlap (core_costs). Stores enter a queue, and wait only when it is full.
//
// Not modelled: hardware prefetchers, branch prediction, the distance between cores, sets of the last level that fill
// up unevenly; a device that can track only so many lines for its hosts.
#pragma once

#include "checker/simulator/machine/timed_hosts.hpp"
#include "checker/simulator/time/cache_tags.hpp"
#include "checker/simulator/time/core_costs.hpp"
#include "checker/simulator/time/first_level_cache.hpp"
#include "checker/simulator/time/line_directory.hpp"
#include "checker/simulator/time/page_frames.hpp"
#include <pmlab/media/device/model.hpp>
#include <pmlab/media/device/profile.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace pmlab::simulator {

// REQUIRES: accesses are made in the order of their times, except for private ones: only these may be ahead of other
// cores. `now` is when an access begins; the result is when the core continues. Not thread-safe, and nothing allocates
// after the constructor. `persistent` is evaluated when a page is touched first.
class memory_hierarchy {
 public:
  // At most core_set::most_cores. The size of caches and whether flushes empty them come from `device`. Both profiles
  // have passed check_profile. `first_frame`: see page_frames. `hosts`: core i is thread i of theirs; it outlives this,
  // and `device` has the times of several; null: there is one.
  memory_hierarchy(const media::device_profile& device, const media::device_profile& dram, unsigned cores,
                   const core_costs& costs = {}, std::uint32_t first_frame = 0, const timed_hosts* hosts = nullptr);
  memory_hierarchy(const memory_hierarchy&) = delete;
  memory_hierarchy& operator=(const memory_hierarchy&) = delete;
  ~memory_hierarchy();

  // The second level of all cores and the last level, of all hosts.
  [[nodiscard]] std::uint64_t cache_bytes() const noexcept { return cache_bytes_; }

  // The end of a load or store that the core's first level serves at once: it is private. `miss`: another one, and
  // nothing has changed.
  static constexpr picoseconds miss = ~picoseconds{0};
  [[nodiscard]] picoseconds load_hit(unsigned core, std::uintptr_t address, std::size_t bytes, picoseconds now) {
    core_state& c = *cores_[core];
    const std::uintptr_t line = address / media::cache_line_bytes;
    if ((address + bytes - 1) / media::cache_line_bytes != line || now < c.under_way_until ||
        !c.first_level.use(name_of(c, line), false))
      return miss;
    ++c.accesses;
    return now + costs_.first_level;
  }
  [[nodiscard]] picoseconds store_hit(unsigned core, std::uintptr_t address, std::size_t bytes, picoseconds now) {
    core_state& c = *cores_[core];
    const std::uintptr_t line = address / media::cache_line_bytes;
    if ((address + bytes - 1) / media::cache_line_bytes != line || !c.first_level.use(name_of(c, line), true))
      return miss;
    ++c.accesses;
    return now + costs_.instructions;
  }

  [[nodiscard]] picoseconds load(unsigned core, std::uintptr_t address, std::size_t bytes, bool persistent,
                                 picoseconds now) {
    const picoseconds done = load_hit(core, address, bytes, now);
    return done != miss ? done : load_lines(core, address, bytes, persistent, now);
  }

  [[nodiscard]] picoseconds store(unsigned core, std::uintptr_t address, std::size_t bytes, bool persistent,
                                  picoseconds now) {
    const picoseconds done = store_hit(core, address, bytes, now);
    return done != miss ? done : store_lines(core, address, bytes, persistent, now);
  }

  // A locked instruction, and a store with sequentially consistent order: waits for the line and for all stores before.
  [[nodiscard]] picoseconds read_modify_write(unsigned core, std::uintptr_t address, std::size_t bytes, bool persistent,
                                              picoseconds now);

  // clwb, clflushopt: begins to write the line back, if it is newer than memory. `evicts`: clflushopt and clflush,
  // which empty the caches of it where clwb would not. Does nothing where the device's platform saves the caches:
  // libpmemobj leaves its flushes out there, too.
  [[nodiscard]] picoseconds flush(unsigned core, std::uintptr_t address, picoseconds now, bool evicts = false);

  // Non-temporal stores; those to one line, one after the other, go to memory together: as soon as the line is whole,
  // and else at the next fence or the first such store to another line.
  [[nodiscard]] picoseconds write_around(unsigned core, std::uintptr_t address, std::size_t bytes, bool persistent,
                                         picoseconds now);

  // Waits for this core's stores, flushes and non-temporal stores. `orders_loads`: mfence, not sfence.
  [[nodiscard]] picoseconds fence(unsigned core, picoseconds now, bool orders_loads = false);

  // A compare-exchange of a word by the device, around all caches: those that have its line give it up, if it is
  // coherent. Waits for the stores before. REQUIRES: several hosts.
  [[nodiscard]] picoseconds exchange_on_device(unsigned core, std::uintptr_t address, picoseconds now);

  // A later load waits only for the rest.
  [[nodiscard]] picoseconds prefetch(unsigned core, std::uintptr_t address, std::size_t bytes, bool persistent,
                                     picoseconds now);

  // True if the core's own caches can serve it, and no other core is affected: its order among other cores' accesses
  // does not matter to them. It may see a line longer than it would, so no core may run ahead with such accesses for
  // long; a loop that waits for another core's store would never end.
  [[nodiscard]] bool is_private(unsigned core, std::uintptr_t address, std::size_t bytes, bool write) const noexcept {
    const std::uintptr_t line = address / media::cache_line_bytes;
    const std::uintptr_t last = (address + bytes - 1) / media::cache_line_bytes;
    if (line == last && cores_[core]->first_level.holds(name_of(*cores_[core], line), write)) return true;
    return holds_lines(core, line, last, write);
  }

  [[nodiscard]] unsigned cores() const noexcept { return static_cast<unsigned>(cores_.size()); }

  // The media's work since the start.
  [[nodiscard]] media::device_model::media_work device_work() const noexcept;
  // Lines that came from the device.
  [[nodiscard]] std::uint64_t fetched() const noexcept { return fetched_; }

 private:
  struct memory;
  struct host_side;

  // Requests under way, of which a core can have only so many. The oldest gives way to the next.
  class request_queue {
   public:
    explicit request_queue(std::uint64_t size) : requests_(size) {}

    // When the next request can begin, if the core would at `now`.
    [[nodiscard]] picoseconds free_at(picoseconds now) const noexcept { return std::max(now, requests_[next_].done); }
    void add(std::uintptr_t line, picoseconds done) noexcept {
      requests_[next_] = {line, done};
      next_ = next_ + 1 == requests_.size() ? 0 : next_ + 1;
    }
    [[nodiscard]] picoseconds done(std::uintptr_t line, picoseconds now) const noexcept {
      for (const request& r : requests_)
        if (r.line == line) now = std::max(now, r.done);
      return now;
    }

   private:
    struct request {
      std::uintptr_t line = 0;
      picoseconds done = 0;
    };
    std::vector<request> requests_;
    std::size_t next_ = 0;
  };

  struct core_state {
    core_state(const media::device_profile& device, const media::device_profile& dram, std::uint64_t second_level_bytes,
               unsigned on_host);

    unsigned host;
    std::uintptr_t host_bits;  // in the names of the host's own lines
    first_level_cache first_level;
    cache_tags<16> second_level;
    std::uint64_t accesses = 0;
    request_queue prefetches;
    request_queue stores;
    picoseconds under_way_until = 0;  // the latest of both queues
    picoseconds stored_at = 0;        // the latest of the stores
    picoseconds written_at = 0;       // fences wait at least until then
    // Loads that are on their way together.
    std::uintptr_t last_missed = 0;     // a line
    std::uint64_t window_end = 0;       // in accesses
    picoseconds ahead = 0;              // how much earlier than now the core can have issued the next load
    std::uintptr_t combining_line = 0;  // line of the last non-temporal store
    std::uint64_t combined = 0;         // a bit for each byte of it that was stored to; all: it has left
    media::device_model::thread_state device;
    media::device_model::thread_state dram;
  };

  // The latency and source of a line.
  struct arrival {
    picoseconds done;
    bool from_afar;  // not from this core's own caches
  };

  // The line by the name that this core's host has for it: one that is not coherent is another line in each.
  [[nodiscard]] std::uintptr_t name_of(const core_state& c, std::uintptr_t line) const noexcept {
    if (hosts_ == nullptr || hosts_->is_coherent(line * media::cache_line_bytes)) return line;
    return line | c.host_bits;
  }

  [[nodiscard]] picoseconds load_lines(unsigned core, std::uintptr_t address, std::size_t bytes, bool persistent,
                                       picoseconds now);
  [[nodiscard]] picoseconds store_lines(unsigned core, std::uintptr_t address, std::size_t bytes, bool persistent,
                                        picoseconds now);
  [[nodiscard]] bool holds_lines(unsigned core, std::uintptr_t line, std::uintptr_t last, bool write) const noexcept;

  [[nodiscard]] picoseconds load_line(unsigned core, std::uintptr_t line, bool persistent, picoseconds now);
  [[nodiscard]] picoseconds store_line(unsigned core, std::uintptr_t line, bool persistent, picoseconds now);
  [[nodiscard]] arrival bring(unsigned core, std::uintptr_t line, bool persistent, bool write, picoseconds now);
  [[nodiscard]] picoseconds make_room(unsigned core, line_number number, picoseconds now);
  [[nodiscard]] bool has_neighbours(unsigned core, const line_state& state) const;
  [[nodiscard]] bool others_have(unsigned host, const line_state& state) const;
  [[nodiscard]] bool others_must_answer(unsigned host, const line_state& state, bool write) const;
  [[nodiscard]] picoseconds take_from_hosts(unsigned core, std::uintptr_t line, line_number number, line_state& state,
                                            bool write, picoseconds now);
  [[nodiscard]] picoseconds read(core_state& c, line_number number, picoseconds now);
  [[nodiscard]] picoseconds send(core_state& c, std::size_t bytes, picoseconds now);
  [[nodiscard]] picoseconds send_partial_line(core_state& c, picoseconds now);
  void drop_from_core(unsigned core, std::uintptr_t line, line_number number);
  void drop_from_last_levels(line_number number, line_state& state);
  void drop_everywhere(line_number number, line_state& state);
  [[nodiscard]] picoseconds write_out(const core_state& c, line_number number, picoseconds now);
  [[nodiscard]] line_number number_of(std::uintptr_t line, bool persistent);
  [[nodiscard]] std::uintptr_t address_of(line_number number);

  core_costs costs_;
  const timed_hosts* hosts_;  // null: one
  bool leaves_flushes_out_;
  bool flush_drops_;
  picoseconds flush_accept_;
  std::uint64_t cache_bytes_;
  page_frames frames_;
  line_directory directory_;
  std::vector<std::unique_ptr<host_side>> host_states_;
  std::uint64_t fetched_ = 0;
  std::vector<std::unique_ptr<core_state>> cores_;
  std::unique_ptr<memory> memory_;
};

}  // namespace pmlab::simulator
