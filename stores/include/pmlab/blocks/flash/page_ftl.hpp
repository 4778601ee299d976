// An ordinary SSD in time: the model is given requests with times and returns times.
//
// It never reads a clock: `emulated` passes the real time, a virtual clock its own. The same calls with the same times
// return the same results, to the picosecond, on every machine. It holds no bytes: a device holds them beside it.
//
// The host's side         The translation layer                          Flash
//   links: commands one     map of mapping units; writes are gathered      dies: one read, program or erase at a time
//   after the other,        into units in a buffer and go round all        channels: one transfer at a time
//   transfers both ways     dies; superblocks; greedy garbage collection
//
// A unit is what a die programs at a time: the same page of all its planes. A superblock is one erase block of each
// die: it is filled, collected and erased as a whole, as drives with parity over their dies do. Garbage collection
// takes the superblock with the least valid data, in small steps between the writes of the host, and its reads and
// programs take the dies' time like all others. Moved data stays in its stream.
//
// Emergent, not built in: write amplification and with it the speed of random writes, the tail of reads beside writes,
// the price of writes smaller than a mapping unit, of scattered data that is read in order, and of a flush without a
// capacitor.
//
// A capacity smaller than the profile's keeps links, dies and times; superblocks get smaller, and only then fewer, so
// the share of a superblock in the capacity stays, as far as `scale` states.
//
// Not modelled: a cache of one bit per cell, work in idle time, wear levelling beyond taking free superblocks in turn,
// errors and retries, parity, refresh, thermal limits, a map that does not fit in the drive's memory.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/flash/host_link.hpp>
#include <pmlab/blocks/flash/nand.hpp>
#include <pmlab/blocks/flash/profile.hpp>
#include <pmlab/blocks/flash/time.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::blocks {

// What a modelled drive has done. Units here are mapping units.
struct flash_counts {
  std::uint64_t requests = 0;          // requests of the host, of all kinds
  std::uint64_t bytes_read = 0;        // by the host
  std::uint64_t bytes_written = 0;     // by the host
  std::uint64_t units_programmed = 0;  // for the host and by garbage collection, with padding
  std::uint64_t units_moved = 0;       // units of these that garbage collection moved
  std::uint64_t units_padded = 0;      // units of these that are empty: a flush without a capacitor
  std::uint64_t units_discarded = 0;   // that held data
  std::uint64_t flash_reads = 0;       // pages, garbage collection included
  std::uint64_t erases = 0;            // erases of superblocks
  std::uint64_t unit_bytes = 0;        // bytes of a mapping unit

  // Bytes that were programmed for each byte that the host has written; 0 before its first write.
  [[nodiscard]] double amplification() const noexcept {
    if (bytes_written == 0) return 0;
    return static_cast<double>(units_programmed * unit_bytes) / static_cast<double>(bytes_written);
  }
};

// How a model of `bytes` bytes stands to the drive that its profile describes.
struct flash_scale {
  double of_capacity = 1;             // modelled bytes over the drive's
  std::uint64_t superblocks = 0;      // modelled
  std::uint64_t of_superblocks = 0;   // the drive's
  std::uint64_t pages_per_block = 0;  // modelled
  std::uint64_t least_bytes = 0;      // from this capacity on there are enough superblocks

  // False if there are so few superblocks that the open ones matter: write amplification is too low.
  [[nodiscard]] bool keeps_ratios() const noexcept { return superblocks >= std::min(of_superblocks, enough); }
  // For results: "1:800 of the drive, 560 superblocks of 560", and the capacity to choose if the ratios are lost.
  [[nodiscard]] std::string text() const {
    std::string all = "1:" + std::to_string(static_cast<std::uint64_t>(std::llround(1 / of_capacity))) +
                      " of the drive, " + std::to_string(superblocks) + " superblocks of " +
                      std::to_string(of_superblocks);
    if (!keeps_ratios())
      all += "; too small for its write amplification: use " + std::to_string(least_bytes) + " bytes or more";
    return all;
  }

  // So many superblocks keep the ratios.
  static constexpr std::uint64_t enough = 64;
};

// Thread safety: any thread may call; one mutex, held for the time of a request. Times of calls need no order, but the
// parts of the drive serve calls in the order in which they are made.
//
// Memory: 4 bytes for each mapping unit of the capacity and 4 for each of the flash, so 8.3 bytes for each 4 KB at 7 %
// over-provisioning.
class page_ftl {
 public:
  // A drive of `shape.bytes()` bytes, whose requests are in blocks of `shape.block_bytes`. Throws pmlab::error if the
  // profile is impossible, if blocks are larger than 65536 bytes, or for more than 2^31 mapping units.
  page_ftl(const drive_profile& profile, const geometry& shape) : page_ftl(profile, shape, layout(profile, shape)) {}

  // A request that is submitted at `now`: returns when it completes. Its blocks are within the geometry. A flush of a
  // drive without a capacitor covers all writes that were submitted before.
  [[nodiscard]] picoseconds perform(const request& r, picoseconds now) {
    const std::scoped_lock lock(mutex_);
    ++counts_.requests;
    switch (r.what) {
      case operation::read: return read(r, now);
      case operation::write: return write(r, now);
      case operation::write_durable: {
        const picoseconds acknowledged = write(r, now);
        return has_capacitor_ ? acknowledged : drain(acknowledged);
      }
      case operation::flush: {
        const picoseconds understood = links_.front().write_command(now);
        return has_capacitor_ ? understood + write_overhead_ : drain(understood);
      }
      case operation::discard: return discard(r, now);
    }
    return now;
  }

  // Fills the drive in order, without time passing: reads find data, and writes overwrite. Nothing is under way
  // afterwards, and the counts restart from zero.
  void fill() {
    const std::scoped_lock lock(mutex_);
    for (std::uint32_t unit = 0; unit < logical_units_; ++unit) place_whole(unit);
    forget_time();
  }

  // Forgets all that was ever written, fills the drive, then overwrites mapping units at random until the write
  // amplification is steady, without time passing: the state in which datasheets of data centres' drives are measured.
  // It depends on `seed` alone, which draws the units. Returns the amplification. Otherwise as `fill`. Takes about half
  // a second for each million mapping units.
  double precondition(std::uint64_t seed = 1) {
    forget_content();
    fill();
    const std::scoped_lock lock(mutex_);
    random_source random(seed);
    const std::uint64_t window = logical_units_ / 2 + 1;
    double last = 0;
    for (int windows = 0; windows < most_windows; ++windows) {
      const std::uint64_t before = counts_.units_programmed;
      for (std::uint64_t i = 0; i < window; ++i) place_whole(static_cast<std::uint32_t>(random.below(logical_units_)));
      const double now = static_cast<double>(counts_.units_programmed - before) / static_cast<double>(window);
      const bool steady = windows >= least_windows && std::abs(now - last) < 0.01 * now;
      last = now;
      if (steady) break;
    }
    forget_time();
    return last;
  }

  // All that is under way ends at once: the buffer is empty, and each part is idle. The data stays where it is. The
  // counts restart from zero.
  void come_to_rest() {
    const std::scoped_lock lock(mutex_);
    forget_time();
  }

  // The bytes of writes that the drive acknowledges before they are programmed.
  [[nodiscard]] std::uint64_t buffer_bytes() const noexcept { return buffer_free_.size() * per_program_ * unit_bytes_; }

  // Since construction, `fill`, `precondition`, `come_to_rest` or `reset_counts`.
  [[nodiscard]] flash_counts counts() const {
    const std::scoped_lock lock(mutex_);
    return counts_;
  }
  // Restarts the counts from zero; erase_counts go on.
  void reset_counts() {
    const std::scoped_lock lock(mutex_);
    counts_ = {};
    counts_.unit_bytes = unit_bytes_;
  }

  // How this model stands to the drive of its profile, for results.
  [[nodiscard]] const flash_scale& scale() const noexcept { return scale_; }

  // The number of erasures of each superblock.
  [[nodiscard]] std::vector<std::uint32_t> erase_counts() const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::uint32_t> all;
    all.reserve(superblocks_.size());
    for (const superblock& s : superblocks_) all.push_back(s.erases);
    return all;
  }

  // Empty, or the first contradiction found: each mapped unit lies in one place, which names it; each superblock's
  // count of valid units is exact; free superblocks hold nothing. For tests. Reads the whole map.
  [[nodiscard]] std::string check() const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::uint32_t> valid(superblocks_.size(), 0);
    for (std::uint32_t unit = 0; unit < logical_units_; ++unit) {
      const std::uint32_t place = place_of_[unit];
      if (place == none) continue;
      if (place >= unit_at_.size()) return "unit " + std::to_string(unit) + " lies beyond the flash";
      if (unit_at_[place] != unit)
        return "unit " + std::to_string(unit) + " lies at " + std::to_string(place) + ", which holds another one";
      ++valid[place / per_superblock_];
    }
    std::vector<std::uint32_t> listed(superblocks_.size(), 0);
    for (const std::uint32_t s : free_) ++listed[s];
    std::uint64_t open = 0;
    for (std::size_t s = 0; s < superblocks_.size(); ++s) {
      const superblock& one = superblocks_[s];
      const std::string name = "superblock " + std::to_string(s);
      if (one.valid != valid[s])
        return name + " counts " + std::to_string(one.valid) + " valid units, but " + std::to_string(valid[s]) +
               " lie there";
      if ((one.is == state::free) != (listed[s] == 1) || listed[s] > 1)
        return name + " is in the list of free ones " + std::to_string(listed[s]) + " times";
      if (one.is == state::free && one.valid != 0) return name + " is free and holds valid units";
      if (one.is == state::open) ++open;
    }
    const auto filling =
        std::count_if(points_.begin(), points_.end(), [](const write_point& p) { return p.superblock != none; });
    if (open != static_cast<std::uint64_t>(filling)) return "an open superblock is not being filled";
    return {};
  }

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};
  static constexpr int least_windows = 3;
  static constexpr int most_windows = 24;
  static constexpr std::uint64_t least_superblocks = 8;

  // Sizes of the modelled flash.
  struct sizes {
    std::uint64_t pages_per_block = 0;
    std::uint64_t superblocks = 0;
    flash_scale scale;
  };

  enum class state : std::uint8_t { free, open, closed, collected };

  struct superblock {
    std::uint32_t valid = 0;
    std::uint32_t erases = 0;
    std::uint32_t stream = 0;
    state is = state::free;
  };

  // A mapping unit that is in a write point's buffer.
  struct waiting_unit {
    std::uint32_t replaced = none;  // its old place
    std::uint64_t covered = 0;      // blocks that the host has written, as bits
  };

  // Where units are added: for each stream one of the host, and one of garbage collection behind them.
  struct write_point {
    std::uint32_t superblock = none;
    std::uint32_t next_unit = 0;        // next unit of the superblock to be programmed
    std::vector<waiting_unit> waiting;  // fewer than a unit takes
    picoseconds opened = 0;             // the buffer had room for the unit
    picoseconds ready = 0;              // all of its data is there
    std::size_t buffer_place = 0;
  };

  page_ftl(const drive_profile& profile, const geometry& shape, const sizes& size)
      : unit_bytes_(profile.mapping_unit_bytes),
        block_bytes_(shape.block_bytes),
        per_program_(static_cast<std::uint32_t>(profile.unit_bytes() / profile.mapping_unit_bytes)),
        dies_(static_cast<std::uint32_t>(profile.dies())),
        programs_(static_cast<std::uint32_t>(profile.dies() * size.pages_per_block)),
        per_superblock_(programs_ * per_program_),
        logical_units_(static_cast<std::uint32_t>(units_of(profile, shape))),
        stripe_units_(profile.links > 1 ? profile.stripe_bytes / profile.mapping_unit_bytes : logical_units_),
        whole_(profile.mapping_unit_bytes <= shape.block_bytes
                   ? 1
                   : ~std::uint64_t{0} >> (64 - profile.mapping_unit_bytes / shape.block_bytes)),
        read_overhead_(detail::picoseconds_of(profile.read_overhead_ns)),
        write_overhead_(detail::picoseconds_of(profile.write_overhead_ns)),
        flush_overhead_(detail::picoseconds_of(profile.flush_overhead_ns)),
        has_capacitor_(profile.capacitor),
        streams_(profile.streams),
        free_wanted_(profile.streams + 1),
        scale_(size.scale),
        links_(profile.links, detail::host_link(profile)),
        nand_(profile, static_cast<double>(size.pages_per_block) / static_cast<double>(profile.pages_per_block)),
        superblocks_(size.superblocks),
        place_of_(logical_units_, none),
        unit_at_(size.superblocks * per_superblock_, none),
        points_(2 * profile.streams),
        buffer_free_(profile.buffer_bytes / profile.unit_bytes(), 0) {
    for (write_point& p : points_) p.waiting.reserve(per_program_);
    for (std::uint32_t s = 0; s < size.superblocks; ++s) free_.push_back(s);
    counts_.unit_bytes = unit_bytes_;
  }

  [[nodiscard]] static std::uint64_t units_of(const drive_profile& profile, const geometry& shape) {
    return (shape.bytes() + profile.mapping_unit_bytes - 1) / profile.mapping_unit_bytes;
  }

  // Keeps the number of superblocks by making them smaller, down to a page of each die.
  [[nodiscard]] static sizes layout(const drive_profile& profile, const geometry& shape) {
    check_drive(profile);
    check_geometry(shape, "modelled drive");
    if (shape.block_bytes < profile.mapping_unit_bytes / 64)
      detail::impossible(profile, "has mapping units of more than 64 blocks", "use larger blocks");
    const auto flash = [&](std::uint64_t bytes) {
      return static_cast<double>(bytes) * (1 + profile.over_provisioning);
    };
    const double page_of_all = static_cast<double>(profile.unit_bytes() * profile.dies());
    const auto superblocks_for = [&](std::uint64_t bytes, std::uint64_t pages) {
      return static_cast<std::uint64_t>(std::ceil(flash(bytes) / (page_of_all * static_cast<double>(pages))));
    };
    sizes size;
    size.scale.of_capacity = static_cast<double>(shape.bytes()) / static_cast<double>(profile.capacity_bytes);
    size.scale.of_superblocks = superblocks_for(profile.capacity_bytes, profile.pages_per_block);
    const double pages = static_cast<double>(profile.pages_per_block) * size.scale.of_capacity;
    size.pages_per_block = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(std::llround(std::min(pages, 1e6))), 1,
                                                     profile.pages_per_block);
    // Superblocks that are being filled, and one that is free, hold no spare.
    const std::uint64_t filled = superblocks_for(shape.bytes(), size.pages_per_block);
    size.superblocks = std::max(filled, least_superblocks) + 2 * profile.streams + 1;
    size.scale.superblocks = filled;
    size.scale.pages_per_block = size.pages_per_block;
    size.scale.least_bytes =
        static_cast<std::uint64_t>(static_cast<double>(std::min(size.scale.of_superblocks, flash_scale::enough)) *
                                   page_of_all / (1 + profile.over_provisioning));
    const double places = static_cast<double>(size.superblocks * size.pages_per_block) * page_of_all /
                          static_cast<double>(profile.mapping_unit_bytes);
    if (places >= static_cast<double>(std::uint64_t{1} << 31))
      detail::impossible(profile, "is modelled with more than 2^31 mapping units", "model a smaller capacity");
    return size;
  }

  [[nodiscard]] detail::host_link& link_of(std::uint64_t unit) noexcept {
    return links_.size() == 1 ? links_.front() : links_[unit / stripe_units_ % links_.size()];
  }

  // Calls body(unit, first byte within it, end within it) for each mapping unit of the request.
  template <class Body>
  void for_each_unit(const request& r, Body&& body) {
    const std::uint64_t from = r.first * block_bytes_;
    const std::uint64_t to = from + std::uint64_t{r.count} * block_bytes_;
    for (std::uint64_t unit = from / unit_bytes_; unit * unit_bytes_ < to; ++unit) {
      const std::uint64_t start = unit * unit_bytes_;
      body(static_cast<std::uint32_t>(unit), std::max(from, start) - start, std::min(to, start + unit_bytes_) - start);
    }
  }

  // Calls body(link, request on that link) for each stripe of the request.
  template <class Body>
  void for_each_stripe(const request& r, Body&& body) {
    if (links_.size() == 1) return body(links_.front(), r);
    const std::uint64_t stripe_blocks = std::max<std::uint64_t>(1, stripe_units_ * unit_bytes_ / block_bytes_);
    request piece = r;
    for (std::uint64_t block = r.first; block < r.first + r.count; block += piece.count) {
      const std::uint64_t end = std::min(r.first + r.count, (block / stripe_blocks + 1) * stripe_blocks);
      piece.first = block;
      piece.count = static_cast<std::uint32_t>(end - block);
      body(link_of(block * block_bytes_ / unit_bytes_), piece);
    }
  }

  [[nodiscard]] std::uint32_t program_of(std::uint32_t place) const noexcept { return place / per_program_; }
  [[nodiscard]] std::size_t die_of(std::uint32_t program) const noexcept { return program % programs_ % dies_; }

  // True if the place is in a write point's buffer, not programmed yet.
  [[nodiscard]] bool waits(std::uint32_t place) const noexcept {
    const std::uint32_t program = program_of(place);
    return std::any_of(points_.begin(), points_.end(), [&](const write_point& p) { return filling(p) == program; });
  }
  [[nodiscard]] std::uint32_t filling(const write_point& p) const noexcept {
    return p.superblock == none ? none : p.superblock * programs_ + p.next_unit;
  }

  // ---- Reads

  picoseconds read(const request& r, picoseconds now) {
    counts_.bytes_read += std::uint64_t{r.count} * block_bytes_;
    picoseconds done = now;
    for_each_stripe(r, [&](detail::host_link& link, const request& piece) {
      const picoseconds begin = link.read_command(now) + read_overhead_;
      picoseconds first = ~picoseconds{0};
      picoseconds last = begin;
      run open;
      const auto arrived = [&](picoseconds at) {
        first = std::min(first, at);
        last = std::max(last, at);
      };
      for_each_unit(piece, [&](std::uint32_t unit, std::uint64_t from, std::uint64_t to) {
        const std::uint32_t place = place_of_[unit];
        if (place == none || waits(place) || nand_.programming(die_of(program_of(place)), program_of(place), begin))
          return arrived(begin);
        if (program_of(place) != open.program) {
          if (open.program != none) arrived(read_run(open, begin));
          open = {program_of(place), 0};
        }
        open.bytes += to - from;
      });
      if (open.program != none) arrived(read_run(open, begin));
      done = std::max(done, link.send(std::uint64_t{piece.count} * block_bytes_, unit_bytes_, now, first, last));
    });
    return done;
  }

  // Neighbours in one unit: one read of the die.
  struct run {
    std::uint32_t program = none;
    std::uint64_t bytes = 0;
  };
  picoseconds read_run(const run& of, picoseconds begin) noexcept {
    ++counts_.flash_reads;
    return nand_.read(die_of(of.program), of.bytes, begin);
  }

  // ---- Writes

  // Returns when the buffer has the data.
  picoseconds write(const request& r, picoseconds now) {
    counts_.bytes_written += std::uint64_t{r.count} * block_bytes_;
    picoseconds acknowledged = now;
    write_point& point = points_[static_cast<std::size_t>(r.of) % streams_];
    for_each_stripe(r, [&](detail::host_link& link, const request& piece) {
      const picoseconds begin = link.write_command(now);
      const picoseconds received = link.receive(std::uint64_t{piece.count} * block_bytes_, now, begin);
      acknowledged = std::max(acknowledged, received);
      for_each_unit(piece, [&](std::uint32_t unit, std::uint64_t from, std::uint64_t to) {
        acknowledged = std::max(acknowledged, place(point, unit, blocks_between(from, to), received));
      });
    });
    dirty_ = true;
    return acknowledged + write_overhead_;
  }

  [[nodiscard]] std::uint64_t blocks_between(std::uint64_t from, std::uint64_t to) const noexcept {
    if (whole_ == 1) return 1;
    const std::uint64_t count = (to - from) / block_bytes_;
    return (~std::uint64_t{0} >> (64 - count)) << (from / block_bytes_);
  }

  void place_whole(std::uint32_t unit) {
    counts_.bytes_written += unit_bytes_;
    static_cast<void>(place(points_.front(), unit, whole_, 0));
  }

  // The host's data of a unit has arrived: returns when the buffer has it.
  picoseconds place(write_point& point, std::uint32_t unit, std::uint64_t covered, picoseconds arrived) {
    const std::uint32_t old = place_of_[unit];
    if (old != none && program_of(old) == filling(point)) {
      point.waiting[old % per_program_].covered |= covered;
    } else {
      if (point.waiting.size() == per_program_) program_host(point);
      if (point.waiting.empty()) take_buffer_place(point, arrived);
      add(point, unit, covered);
    }
    const picoseconds taken = std::max(arrived, point.opened);
    point.ready = std::max(point.ready, taken);
    // The rest of a unit that was written in part may follow.
    if (point.waiting.size() == per_program_ && point.waiting.back().covered == whole_) program_host(point);
    return taken;
  }

  void take_buffer_place(write_point& point, picoseconds now) {
    if (point.superblock == none) open_for_host(point, now);
    point.buffer_place = next_buffer_place_;
    next_buffer_place_ = next_buffer_place_ + 1 == buffer_free_.size() ? 0 : next_buffer_place_ + 1;
    point.opened = buffer_free_[point.buffer_place];
    point.ready = 0;
  }

  // Adds a unit at a write point that has room in its superblock and its buffer.
  void add(write_point& point, std::uint32_t unit, std::uint64_t covered) {
    const std::uint32_t old = place_of_[unit];
    if (old != none) drop(old);
    const std::uint32_t at = filling(point) * per_program_ + static_cast<std::uint32_t>(point.waiting.size());
    place_of_[unit] = at;
    unit_at_[at] = unit;
    ++superblocks_[point.superblock].valid;
    point.waiting.push_back({old, covered});
  }

  // The unit at `place` is not valid any more.
  void drop(std::uint32_t place) noexcept {
    unit_at_[place] = none;
    --superblocks_[place / per_superblock_].valid;
  }

  // Programs a unit of the host, and collects garbage in proportion.
  void program_host(write_point& point) {
    const picoseconds begin = point.ready;
    const picoseconds done = program(point, begin, complete_partial_units(point, begin));
    buffer_free_[point.buffer_place] = done;
    host_done_ = std::max(host_done_, done);
    collect(per_program_, begin);
  }

  // Reads the rest of units that the host has written in part. Returns when it is there.
  picoseconds complete_partial_units(const write_point& point, picoseconds begin) noexcept {
    picoseconds ready = begin;
    if (whole_ == 1) return ready;
    for (const waiting_unit& w : point.waiting) {
      if (w.covered == whole_ || w.replaced == none) continue;
      ++counts_.flash_reads;
      ready = std::max(ready, nand_.read(die_of(program_of(w.replaced)), unit_bytes_, begin));
    }
    return ready;
  }

  // Programs the units that wait at a write point, padded if they are less than a program takes. Returns when it is
  // done.
  picoseconds program(write_point& point, picoseconds begin, picoseconds ready) {
    const std::uint32_t number = filling(point);
    const picoseconds done = nand_.program(die_of(number), number, point.waiting.size() * unit_bytes_, begin, ready);
    counts_.units_programmed += per_program_;
    counts_.units_padded += per_program_ - point.waiting.size();
    point.waiting.clear();
    if (++point.next_unit == programs_) {
      superblocks_[point.superblock].is = state::closed;
      point.superblock = none;
    }
    return done;
  }

  // Programs all that waits in the buffer. Returns when the host's writes are in flash, with the map.
  picoseconds drain(picoseconds now) {
    if (!dirty_) return now + write_overhead_;
    for (std::size_t s = 0; s < streams_; ++s) {
      if (points_[s].waiting.empty()) continue;
      points_[s].ready = std::max(points_[s].ready, now);
      program_host(points_[s]);
    }
    dirty_ = false;
    return std::max(now + write_overhead_, host_done_) + flush_overhead_;
  }

  // ---- Superblocks

  void open(write_point& point) {
    point.superblock = free_.front();
    free_.pop_front();
    point.next_unit = 0;
    superblocks_[point.superblock].is = state::open;
    superblocks_[point.superblock].stream =
        static_cast<std::uint32_t>(static_cast<std::size_t>(&point - points_.data()) % streams_);
  }

  // Leaves one for garbage collection, which could not end without.
  void open_for_host(write_point& point, picoseconds now) {
    while (free_.size() <= 1 && collecting()) collect_step(now);
    open(point);
  }

  // ---- Garbage collection

  // The host has written so many units: moves as many valid ones as keep the number of free superblocks.
  void collect(std::uint64_t host_units, picoseconds now) {
    if (victim_ == none) {
      if (free_.size() >= free_wanted_ || !choose_victim()) return;
    }
    pace_ += host_units * victim_valid_;
    while (victim_ != none && (victim_valid_ == 0 || pace_ >= per_superblock_ - victim_valid_)) {
      pace_ -= victim_valid_ == 0 ? 0 : per_superblock_ - victim_valid_;
      collect_step(now);
    }
  }

  [[nodiscard]] bool collecting() { return victim_ != none || choose_victim(); }

  // The closed superblock with the least valid data; of several, the next after the last one. False if none has room to
  // gain.
  [[nodiscard]] bool choose_victim() noexcept {
    const auto count = static_cast<std::uint32_t>(superblocks_.size());
    std::uint32_t best = none;
    std::uint32_t least = per_superblock_;
    for (std::uint32_t i = 0; i < count; ++i) {
      std::uint32_t s = last_victim_ + 1 + i;
      if (s >= count) s -= count;
      if (superblocks_[s].is != state::closed || superblocks_[s].valid >= least) continue;
      least = superblocks_[s].valid;
      best = s;
    }
    if (best == none) return false;
    victim_ = last_victim_ = best;
    victim_valid_ = least;
    victim_next_ = 0;
    victim_read_ = none;
    pace_ = 0;
    superblocks_[best].is = state::collected;
    return true;
  }

  // Moves the next valid unit of the victim; erases it if there is none.
  void collect_step(picoseconds now) {
    const std::uint32_t first = victim_ * per_superblock_;
    if (superblocks_[victim_].valid == 0) return erase(now);
    while (unit_at_[first + victim_next_] == none) ++victim_next_;
    const std::uint32_t place = first + victim_next_;
    read_victim(place, now);
    write_point& point = points_[streams_ + superblocks_[victim_].stream];
    if (point.superblock == none) open(point);
    if (point.waiting.empty()) point.ready = now;
    point.ready = std::max(point.ready, victim_ready_);
    add(point, unit_at_[place], whole_);
    ++counts_.units_moved;
    if (point.waiting.size() == per_program_) static_cast<void>(program(point, now, point.ready));
    if (superblocks_[victim_].valid == 0) erase(now);
  }

  // Reads all valid data of the place's unit, unless that was done for its neighbour.
  void read_victim(std::uint32_t place, picoseconds now) noexcept {
    const std::uint32_t number = program_of(place);
    if (number == victim_read_) return;
    std::uint64_t units = 0;
    // Each of them is looked up in the map next, at random places.
    for (std::uint32_t at = place, end = (number + 1) * per_program_; at < end; ++at) {
      if (unit_at_[at] == none) continue;
      __builtin_prefetch(&place_of_[unit_at_[at]], 1);
      ++units;
    }
    victim_read_ = number;
    victim_ready_ = nand_.read(die_of(number), units * unit_bytes_, now);
    ++counts_.flash_reads;
  }

  void erase(picoseconds now) {
    for (std::uint32_t d = 0; d < dies_; ++d) nand_.erase(d, now);
    ++counts_.erases;
    superblock& s = superblocks_[victim_];
    ++s.erases;
    s.is = state::free;
    free_.push_back(victim_);
    victim_ = none;
  }

  // ---- The rest

  picoseconds discard(const request& r, picoseconds now) {
    for_each_unit(r, [&](std::uint32_t unit, std::uint64_t from, std::uint64_t to) {
      if (to - from < unit_bytes_ || place_of_[unit] == none) return;
      drop(place_of_[unit]);
      place_of_[unit] = none;
      ++counts_.units_discarded;
    });
    return link_of(r.first * block_bytes_ / unit_bytes_).write_command(now) + write_overhead_;
  }

  // As constructed, but for the counts and for what is under way.
  void forget_content() {
    const std::scoped_lock lock(mutex_);
    std::ranges::fill(superblocks_, superblock{});
    std::ranges::fill(place_of_, none);
    std::ranges::fill(unit_at_, none);
    free_.clear();
    for (std::uint32_t s = 0; s < superblocks_.size(); ++s) free_.push_back(s);
    for (write_point& p : points_) {
      p.superblock = none;
      p.next_unit = 0;
      p.waiting.clear();
    }
    next_buffer_place_ = 0;
    victim_ = victim_read_ = none;
    last_victim_ = victim_valid_ = victim_next_ = 0;
    pace_ = 0;
  }

  void forget_time() noexcept {
    for (detail::host_link& l : links_) l.reset_time();
    nand_.reset_time();
    std::fill(buffer_free_.begin(), buffer_free_.end(), 0);
    for (write_point& p : points_) p.opened = p.ready = 0;
    host_done_ = victim_ready_ = 0;
    dirty_ = false;
    counts_ = {};
    counts_.unit_bytes = unit_bytes_;
  }

  std::uint64_t unit_bytes_;
  std::uint64_t block_bytes_;
  std::uint32_t per_program_;  // mapping units of a unit that a die programs
  std::uint32_t dies_;
  std::uint32_t programs_;        // units of a superblock
  std::uint32_t per_superblock_;  // mapping units of it
  std::uint32_t logical_units_;
  std::uint64_t stripe_units_;
  std::uint64_t whole_;  // the blocks of a mapping unit, as bits
  picoseconds read_overhead_;
  picoseconds write_overhead_;
  picoseconds flush_overhead_;
  bool has_capacitor_;
  std::size_t streams_;
  std::size_t free_wanted_;
  flash_scale scale_;

  mutable std::mutex mutex_;
  std::vector<detail::host_link> links_;
  detail::nand nand_;
  std::vector<superblock> superblocks_;
  std::deque<std::uint32_t> free_;        // superblocks, taken in turn
  std::vector<std::uint32_t> place_of_;   // place of each mapping unit of the host
  std::vector<std::uint32_t> unit_at_;    // the mapping unit whose valid data is at a place
  std::vector<write_point> points_;       // the last is garbage collection's
  std::vector<picoseconds> buffer_free_;  // when the places of the buffer are free, one unit each
  std::size_t next_buffer_place_ = 0;
  picoseconds host_done_ = 0;  // the host's writes that are programmed, or being programmed, are in flash
  bool dirty_ = false;         // written since the last flush

  std::uint32_t victim_ = none;
  std::uint32_t last_victim_ = 0;
  std::uint32_t victim_valid_ = 0;  // when it was chosen
  std::uint32_t victim_next_ = 0;
  std::uint32_t victim_read_ = none;
  picoseconds victim_ready_ = 0;
  std::uint64_t pace_ = 0;
  flash_counts counts_;
};

}  // namespace pmlab::blocks
