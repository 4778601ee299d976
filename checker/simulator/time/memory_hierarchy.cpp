// The memory of a simulated machine: everything beyond a hit in the first level.
#include "checker/simulator/time/memory_hierarchy.hpp"
#include <pmlab/base/error.hpp>

#include <bit>
#include <string>

namespace pmlab::simulator {
namespace {

using media::cache_line_bytes;
using media::device_model;
using media::device_profile;

constexpr std::uintptr_t lines_per_page = std::uintptr_t{1} << line_bits;

// Caches are modelled here: the device model handles only their misses.
device_profile uncached(device_profile profile) {
  profile.cpu_cache_bytes = 0;
  return profile;
}

// A core without any cache does not exist: a profile that has none measures beyond them.
std::uint64_t second_level_bytes(const device_profile& device, const core_costs& costs) {
  constexpr std::uint64_t least = std::uint64_t{64} << 10;
  return std::clamp(device.cpu_cache_bytes / 2, least, costs.second_level_bytes);
}

std::uint64_t last_level_bytes(const device_profile& device, const core_costs& costs, unsigned cores) {
  const std::uint64_t own = second_level_bytes(device, costs);
  return device.cpu_cache_bytes <= own ? 0 : (device.cpu_cache_bytes - own) * cores;
}

constexpr unsigned host_bit_of_lines = host_bit_of_pages + line_bits;

core_costs with_hosts(core_costs costs, const device_profile& device) {
  costs.host_transfer = media::to_picoseconds(device.host_transfer_ns);
  costs.host_invalidation = media::to_picoseconds(device.host_invalidation_ns);
  costs.device_exchange = media::to_picoseconds(device.device_exchange_ns);
  costs.line_invalidation = media::to_picoseconds(device.line_invalidation_ns);
  costs.load_fence = media::to_picoseconds(device.load_fence_ns);
  return costs;
}

// The cores of each host. The first thread of a run, which measures nothing, has a core of host 0: each of the others
// has one more, so that all are alike.
unsigned cores_of_host(unsigned cores, const timed_hosts* hosts) {
  return hosts == nullptr ? cores : hosts->threads + 1;
}

unsigned count_of(const timed_hosts* hosts) { return hosts == nullptr ? 1 : hosts->count; }

constexpr std::uint64_t all_bytes = ~std::uint64_t{0};

// Those of line `line` that [address, address + bytes) has: a bit for each.
constexpr std::uint64_t bytes_of_line(std::uintptr_t line, std::uintptr_t address, std::size_t bytes) {
  const std::uintptr_t start = line * cache_line_bytes;
  const std::uintptr_t first = std::max(address, start) - start;
  const std::uintptr_t end = std::min(address + std::max<std::size_t>(bytes, 1), start + cache_line_bytes) - start;
  return (all_bytes >> (cache_line_bytes - (end - first))) << first;
}

constexpr std::uint8_t bit_of(unsigned host) { return static_cast<std::uint8_t>(1U << host); }

}  // namespace

struct memory_hierarchy::memory {
  explicit memory(const device_profile& for_device)
      : device(uncached(for_device)), device_evictions(uncached(for_device)) {}

  device_model device;
  // Lines evicted from the last level, in no order that a program knows.
  device_model::thread_state device_evictions;
};

struct memory_hierarchy::host_side {
  host_side(const device_profile& for_dram, std::uint64_t last_level_bytes)
      : last_level(last_level_bytes), dram(uncached(for_dram)), dram_evictions(uncached(for_dram)) {}

  cache_tags<16> last_level;
  device_model dram;
  device_model::thread_state dram_evictions;
};

memory_hierarchy::core_state::core_state(const device_profile& for_device, const device_profile& for_dram,
                                         std::uint64_t second_level_bytes, unsigned on_host)
    : host(on_host),
      host_bits(std::uintptr_t{on_host} << host_bit_of_lines),
      second_level(second_level_bytes),
      prefetches(for_device.outstanding_reads),
      stores(for_device.outstanding_stores),
      device(uncached(for_device)),
      dram(uncached(for_dram)) {}

memory_hierarchy::memory_hierarchy(const device_profile& device, const device_profile& dram, unsigned cores,
                                   const core_costs& costs, std::uint32_t first_frame, const timed_hosts* hosts)
    : costs_(with_hosts(costs, device)),
      hosts_(hosts),
      leaves_flushes_out_(media::keeps_caches(device.persistence)),
      flush_drops_(device.flush_drops_cached_line),
      flush_accept_(media::to_picoseconds(device.flush_accept_ns)),
      cache_bytes_(second_level_bytes(device, costs) * cores +
                   last_level_bytes(device, costs, cores_of_host(cores, hosts)) * count_of(hosts)),
      frames_(first_frame),
      memory_(std::make_unique<memory>(device)) {
  if (cores == 0 || cores > core_set::most_cores)
    throw error("a simulated machine of " + std::to_string(cores) + " cores",
                "use 1 to " + std::to_string(core_set::most_cores));
  for (unsigned h = 0; h < count_of(hosts); ++h)
    host_states_.push_back(
        std::make_unique<host_side>(dram, last_level_bytes(device, costs, cores_of_host(cores, hosts))));
  for (unsigned i = 0; i < cores; ++i)
    cores_.push_back(std::make_unique<core_state>(device, dram, second_level_bytes(device, costs),
                                                  hosts == nullptr ? 0 : hosts->host_of(i)));
}

memory_hierarchy::~memory_hierarchy() = default;

// ---- accesses of the core ----

picoseconds memory_hierarchy::load_lines(unsigned core, std::uintptr_t address, std::size_t bytes, bool persistent,
                                         picoseconds now) {
  media::for_each_line(reinterpret_cast<const void*>(address), bytes,
                       [&](std::uintptr_t start) { now = load_line(core, start / cache_line_bytes, persistent, now); });
  return now;
}

picoseconds memory_hierarchy::load_line(unsigned core, std::uintptr_t line, bool persistent, picoseconds now) {
  core_state& c = *cores_[core];
  line = name_of(c, line);
  ++c.accesses;
  const picoseconds soonest = now + costs_.first_level;
  if (c.first_level.use(line, false)) {
    if (now >= c.under_way_until) return soonest;
    return std::max({soonest, c.prefetches.done(line, now), c.stores.done(line, now)});
  }
  const bool together = line - c.last_missed + costs_.nearby_lines <= 2 * costs_.nearby_lines;
  if (!together || c.accesses > c.window_end) {
    c.window_end = c.accesses + costs_.window;
    c.ahead = 0;
  }
  c.last_missed = line;
  const picoseconds done = std::max(soonest, bring(core, line, persistent, false, now - c.ahead).done);
  c.ahead += done - soonest;
  return done;
}

picoseconds memory_hierarchy::store_lines(unsigned core, std::uintptr_t address, std::size_t bytes, bool persistent,
                                          picoseconds now) {
  media::for_each_line(reinterpret_cast<const void*>(address), bytes, [&](std::uintptr_t start) {
    now = store_line(core, start / cache_line_bytes, persistent, now);
  });
  return now;
}

picoseconds memory_hierarchy::store_line(unsigned core, std::uintptr_t line, bool persistent, picoseconds now) {
  core_state& c = *cores_[core];
  line = name_of(c, line);
  ++c.accesses;
  if (c.first_level.use(line, true)) return now + costs_.instructions;
  // A line of the core's own caches is stored to at once; the queue is for those that have to come.
  const bool own = holds_lines(core, line, line, true);
  const picoseconds begin = own ? now : c.stores.free_at(now);
  const picoseconds done = bring(core, line, persistent, true, begin).done;
  if (own) return now + costs_.instructions;
  c.stores.add(line, done);
  c.stored_at = std::max(c.stored_at, done);
  c.under_way_until = std::max(c.under_way_until, done);
  return begin + costs_.instructions;
}

picoseconds memory_hierarchy::read_modify_write(unsigned core, std::uintptr_t address, std::size_t bytes,
                                                bool persistent, picoseconds now) {
  core_state& c = *cores_[core];
  ++c.accesses;
  c.window_end = 0;
  const std::uintptr_t last = (address + std::max<std::size_t>(bytes, 1) - 1) / cache_line_bytes;
  picoseconds ready = std::max(now, c.stored_at);
  for (std::uintptr_t at = address / cache_line_bytes; at <= last; ++at) {
    const std::uintptr_t line = name_of(c, at);
    if (now < c.under_way_until) ready = c.prefetches.done(line, ready);
    if (!c.first_level.use(line, true)) ready = std::max(ready, bring(core, line, persistent, true, now).done);
  }
  return ready + costs_.locked_instruction;
}

picoseconds memory_hierarchy::prefetch(unsigned core, std::uintptr_t address, std::size_t bytes, bool persistent,
                                       picoseconds now) {
  core_state& c = *cores_[core];
  const std::uintptr_t last = (address + std::max<std::size_t>(bytes, 1) - 1) / cache_line_bytes;
  for (std::uintptr_t at = address / cache_line_bytes; at <= last; ++at) {
    const std::uintptr_t line = name_of(c, at);
    ++c.accesses;
    now += costs_.instructions;
    if (c.first_level.use(line, false)) continue;
    now = c.prefetches.free_at(now);
    const arrival line_there = bring(core, line, persistent, false, now);
    if (!line_there.from_afar) continue;
    c.prefetches.add(line, line_there.done);
    c.under_way_until = std::max(c.under_way_until, line_there.done);
  }
  return now;
}

picoseconds memory_hierarchy::flush(unsigned core, std::uintptr_t address, picoseconds now, bool evicts) {
  if (leaves_flushes_out_) return now;
  core_state& c = *cores_[core];
  ++c.accesses;
  const std::uintptr_t line = name_of(c, address / cache_line_bytes);
  const picoseconds end = now + (evicts && hosts_ != nullptr ? costs_.line_invalidation : costs_.instructions);
  if (frames_.frame_if_touched(line / lines_per_page) == page_frames::none) return end;
  const line_number number = number_of(line, false);
  line_state& state = directory_.at(number);
  const bool dirty = state.dirty;
  const unsigned owner = state.owner();
  if (flush_drops_ || evicts) {
    drop_everywhere(number, state);
  } else if (owner != line_state::nobody) {
    cores_[owner]->first_level.make_read_only(line);
  }
  if (!dirty) return end;
  state.dirty = false;
  // A line that is still on its way from another core leaves when it is here.
  picoseconds here = now < c.under_way_until ? c.stores.done(line, now) : now;
  if (owner != core && owner != line_state::nobody) here = std::max(here, now + costs_.transfer);
  if (here > now) c.written_at = std::max(c.written_at, here + flush_accept_);
  const bool device = is_persistent(number);
  return std::max(end, (device ? memory_->device : host_states_[c.host]->dram)
                           .write_back(device ? c.device : c.dram, address_of(number), now));
}

picoseconds memory_hierarchy::write_around(unsigned core, std::uintptr_t address, std::size_t bytes, bool persistent,
                                           picoseconds now) {
  core_state& c = *cores_[core];
  const std::uintptr_t last = (address + std::max<std::size_t>(bytes, 1) - 1) / cache_line_bytes;
  for (std::uintptr_t at = address / cache_line_bytes; at <= last; ++at) {
    const std::uintptr_t line = name_of(c, at);
    ++c.accesses;
    now += costs_.instructions;
    if (line != c.combining_line) {
      now = send_partial_line(c, now);
      c.combining_line = line;
      c.combined = 0;
      const line_number number = number_of(line, persistent);
      line_state& state = directory_.at(number);
      drop_everywhere(number, state);
      state.dirty = false;
    }
    if (c.combined == all_bytes) continue;
    c.combined |= bytes_of_line(at, address, bytes);
    if (c.combined == all_bytes) now = send(c, cache_line_bytes, now);
  }
  return now;
}

// The line of the last non-temporal stores leaves the core.
picoseconds memory_hierarchy::send(core_state& c, std::size_t bytes, picoseconds now) {
  const line_number number = number_of(c.combining_line, false);
  const bool device = is_persistent(number);
  return (device ? memory_->device : host_states_[c.host]->dram)
      .write_around(device ? c.device : c.dram, address_of(number), now, bytes);
}

picoseconds memory_hierarchy::send_partial_line(core_state& c, picoseconds now) {
  if (c.combined == 0 || c.combined == all_bytes) return now;
  now = send(c, static_cast<std::size_t>(std::popcount(c.combined)), now);
  c.combined = 0;
  return now;
}

picoseconds memory_hierarchy::fence(unsigned core, picoseconds now, bool orders_loads) {
  core_state& c = *cores_[core];
  ++c.accesses;
  c.window_end = 0;
  now = send_partial_line(c, now);
  c.combining_line = 0;
  c.combined = 0;
  const picoseconds own = orders_loads && hosts_ != nullptr ? costs_.load_fence : costs_.instructions;
  return std::max({now + own, c.stored_at, c.written_at, memory_->device.fence(c.device, now),
                   host_states_[c.host]->dram.fence(c.dram, now)});
}

// Requests for one word reach the device one by one. Where no other host has the line, the next one is served while the
// answer is on its way.
picoseconds memory_hierarchy::exchange_on_device(unsigned core, std::uintptr_t address, picoseconds now) {
  core_state& c = *cores_[core];
  ++c.accesses;
  c.window_end = 0;
  constexpr bool persistent = true;
  const std::uintptr_t line = address / cache_line_bytes;
  const line_number on_device = number_of(line, persistent);
  line_state& queue = directory_.at(on_device);
  const picoseconds begin = std::max({now, c.stored_at, queue.free_at});
  picoseconds done = begin + costs_.device_exchange;
  queue.free_at = begin + costs_.shared_transfer;
  if (hosts_->is_coherent(address)) {
    if (others_have(c.host, queue)) queue.free_at = done = std::max(done, begin + costs_.host_invalidation);
    drop_everywhere(on_device, queue);
    queue.dirty = false;
  }
  done = std::max(done, read(c, on_device, begin));
  static_cast<void>(memory_->device.write_back(memory_->device_evictions, address_of(on_device), done));
  return done;
}

bool memory_hierarchy::holds_lines(unsigned core, std::uintptr_t line, std::uintptr_t last, bool write) const noexcept {
  for (; line <= last; ++line) {
    const std::uintptr_t name = name_of(*cores_[core], line);
    const line_number first = frames_.frame_if_touched(name / lines_per_page);
    if (first == page_frames::none) return false;
    const line_state& state = directory_.at(first + static_cast<line_number>(name % lines_per_page));
    if (write ? state.owner() != core : !state.holders.has(core)) return false;
  }
  return true;
}

device_model::media_work memory_hierarchy::device_work() const noexcept { return memory_->device.work(); }

// ---- lines ----

line_number memory_hierarchy::number_of(std::uintptr_t line, bool persistent) {
  return frames_.frame(line / lines_per_page, persistent) + static_cast<line_number>(line % lines_per_page);
}

// Where the device, or DRAM, has the line. All hosts' lines of one address have one place on the device.
std::uintptr_t memory_hierarchy::address_of(line_number number) {
  if (hosts_ != nullptr && is_persistent(number)) {
    constexpr bool persistent = true;
    const std::uintptr_t line = frames_.virtual_line(number);
    number = number_of((page_of_any_host(line / lines_per_page) * lines_per_page) + line % lines_per_page, persistent);
  }
  return std::uintptr_t{number & ~persistent_bit} * cache_line_bytes;
}

picoseconds memory_hierarchy::read(core_state& c, line_number number, picoseconds now) {
  const bool device = is_persistent(number);
  fetched_ += device ? 1 : 0;
  return (device ? memory_->device : host_states_[c.host]->dram)
      .read(device ? c.device : c.dram, address_of(number), now, frames_.huge_page(number));
}

// Brings the line into this core's caches, for a store or not.
memory_hierarchy::arrival memory_hierarchy::bring(unsigned core, std::uintptr_t line, bool persistent, bool write,
                                                  picoseconds now) {
  core_state& c = *cores_[core];
  const line_number number = number_of(line, persistent);
  line_state& state = directory_.at(number);
  const bool here = state.holders.has(core);
  const bool own = here && (!write || state.owner() == core);
  arrival result{now + costs_.second_level, !own};
  if (here)
    c.second_level.touch(number);
  else
    now = make_room(core, number, now);
  if (!own) {
    const picoseconds begin = std::max(now, state.free_at);
    if (hosts_ != nullptr && others_must_answer(c.host, state, write)) {
      result.done = take_from_hosts(core, line, number, state, write, begin);
    } else if (has_neighbours(core, state)) {
      result.done = begin + costs_.transfer;
      const unsigned owner = state.owner();
      state.free_at = write || owner != line_state::nobody ? result.done : begin + costs_.shared_transfer;
      if (write) {
        state.holders.for_each([&](unsigned other) {
          if (other == core) return;
          drop_from_core(other, line, number);
          state.holders.remove(other);
        });
      } else if (owner != line_state::nobody) {
        cores_[owner]->first_level.make_read_only(line);
      }
      state.take_from_owner();
    } else if (here || (state.last_levels & bit_of(c.host)) != 0) {
      result.done = begin + costs_.last_level;
    } else {
      result.done = read(c, number, begin);
    }
    if ((state.last_levels & bit_of(c.host)) != 0) host_states_[c.host]->last_level.remove(number);
    state.last_levels &= static_cast<std::uint8_t>(~bit_of(c.host));
    state.holders.add(core);
    if (write || (state.last_levels == 0 && !state.holders.has_others_than(core))) state.give_to(core);
  }
  state.dirty = state.dirty || write;
  c.first_level.insert(line, state.dirty && state.owner() == core);
  return result;
}

// Another core of this core's host has the line.
bool memory_hierarchy::has_neighbours(unsigned core, const line_state& state) const {
  if (hosts_ == nullptr) return state.holders.has_others_than(core);
  bool found = false;
  state.holders.for_each([&](unsigned other) { found |= other != core && cores_[other]->host == cores_[core]->host; });
  return found;
}

// Hosts beside this one have the line in some cache.
bool memory_hierarchy::others_have(unsigned host, const line_state& state) const {
  bool found = (state.last_levels & ~bit_of(host)) != 0;
  state.holders.for_each([&](unsigned core) { found |= cores_[core]->host != host; });
  return found;
}

// A load needs them where one may have modified the line: what all may only read, the device has, too.
bool memory_hierarchy::others_must_answer(unsigned host, const line_state& state, bool write) const {
  if (!others_have(host, state)) return false;
  const unsigned owner = state.owner();
  return write || state.dirty || (owner != line_state::nobody && cores_[owner]->host != host);
}

// The device asks the other hosts for the line, and passes on what they had: what is dirty goes through its memory.
picoseconds memory_hierarchy::take_from_hosts(unsigned core, std::uintptr_t line, line_number number, line_state& state,
                                              bool write, picoseconds now) {
  core_state& c = *cores_[core];
  picoseconds done = now + (state.dirty ? costs_.host_transfer : costs_.host_invalidation);
  if (state.dirty) static_cast<void>(memory_->device.write_back(memory_->device_evictions, address_of(number), now));
  if (!state.holders.has(core)) done = std::max(done, read(c, number, now));
  state.dirty = false;
  if (write) {
    const bool here = state.holders.has(core);
    state.holders.for_each([&](unsigned other) {
      if (other != core) drop_from_core(other, line, number);
    });
    state.holders = {};
    if (here) state.holders.add(core);
    drop_from_last_levels(number, state);
  } else if (state.owner() != line_state::nobody) {
    cores_[state.owner()]->first_level.make_read_only(line);
  }
  state.take_from_owner();
  return state.free_at = done;
}

// A line evicted from the core's second level for `number` moves to the last level, and one evicted from that to
// memory. Returns when memory has accepted it.
picoseconds memory_hierarchy::make_room(unsigned core, line_number number, picoseconds now) {
  core_state& c = *cores_[core];
  line_number out = 0;
  if (!c.second_level.insert(number, out)) return now;
  c.first_level.remove(frames_.virtual_line(out));
  line_state& state = directory_.at(out);
  state.holders.remove(core);
  if (state.owner() == core) state.take_from_owner();
  if (!state.holders.empty()) return now;
  cache_tags<16>& last_level = host_states_[c.host]->last_level;
  if (!last_level.has_room()) return write_out(c, out, now);
  state.last_levels |= bit_of(c.host);
  line_number last_out = 0;
  if (!last_level.insert(out, last_out)) return now;
  directory_.at(last_out).last_levels &= static_cast<std::uint8_t>(~bit_of(c.host));
  return write_out(c, last_out, now);
}

picoseconds memory_hierarchy::write_out(const core_state& c, line_number number, picoseconds now) {
  line_state& state = directory_.at(number);
  if (!state.dirty) return now;
  state.dirty = false;
  host_side& own = *host_states_[c.host];
  const bool device = is_persistent(number);
  return (device ? memory_->device : own.dram)
      .write_back(device ? memory_->device_evictions : own.dram_evictions, address_of(number), now);
}

void memory_hierarchy::drop_from_core(unsigned core, std::uintptr_t line, line_number number) {
  cores_[core]->first_level.remove(line);
  cores_[core]->second_level.remove(number);
}

void memory_hierarchy::drop_from_last_levels(line_number number, line_state& state) {
  for (unsigned h = 0; state.last_levels >> h != 0; ++h)
    if ((state.last_levels & bit_of(h)) != 0) host_states_[h]->last_level.remove(number);
  state.last_levels = 0;
}

void memory_hierarchy::drop_everywhere(line_number number, line_state& state) {
  const std::uintptr_t line = frames_.virtual_line(number);
  state.holders.for_each([&](unsigned core) { drop_from_core(core, line, number); });
  state.holders = {};
  state.take_from_owner();
  drop_from_last_levels(number, state);
}

}  // namespace pmlab::simulator
