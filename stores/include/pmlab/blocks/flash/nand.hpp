// Flash: dies on channels, their reads, programs and erases in time.
//
// A die does one thing at a time. A read goes before the programs that wait; of the program under way it awaits the
// rest, or suspends it, if the drive can.
#pragma once

#include <pmlab/blocks/flash/profile.hpp>
#include <pmlab/blocks/flash/time.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pmlab::blocks::detail {

// Not thread-safe. Units and dies are numbers from 0; die d is on channel d % channels.
class nand {
 public:
  // `erase_share` of tERASE is the time of an erase: blocks of a scaled-down model are smaller.
  nand(const drive_profile& profile, double erase_share)
      : read_(picoseconds_of(profile.read_ns)),
        program_(picoseconds_of(profile.program_ns)),
        erase_(picoseconds_of(profile.erase_ns * erase_share)),
        suspend_(picoseconds_of(profile.suspend_ns)),
        transfer_(profile.channel_mb_per_s),
        channels_(profile.channels),
        dies_(profile.dies()) {}

  // Reads `bytes` bytes of one unit, asked for at `now`. Returns when the controller has them.
  picoseconds read(std::size_t die_number, std::uint64_t bytes, picoseconds now) noexcept {
    die& d = dies_[die_number];
    picoseconds start = std::max(now, d.reads_end);
    if (d.busy > start) {
      if (suspend_ == 0) {
        start += (d.busy - start) % program_;
      } else if (d.reads_end <= now) {  // otherwise it is suspended already
        start += suspend_;
        d.busy += suspend_;
      }
    }
    d.reads_end = start + read_;
    d.busy = d.busy > start ? d.busy + read_ : d.reads_end;
    return channel_of(die_number).take(now, d.reads_end, transfer_.of(bytes));
  }

  // Programs a unit with `bytes` bytes of data, asked for at `now`; the data is at the controller at `ready`. Returns
  // when it is done.
  picoseconds program(std::size_t die_number, std::uint64_t unit, std::uint64_t bytes, picoseconds now,
                      picoseconds ready) noexcept {
    die& d = dies_[die_number];
    const picoseconds loaded = channel_of(die_number).take(now, ready, transfer_.of(bytes));
    d.busy = std::max(d.busy, now) + program_;
    const picoseconds done = std::max(d.busy, loaded + program_);
    d.recent[d.next_recent] = {unit, done};
    d.next_recent = (d.next_recent + 1) % d.recent.size();
    return done;
  }

  void erase(std::size_t die_number, picoseconds now) noexcept {
    die& d = dies_[die_number];
    d.busy = std::max(d.busy, now) + erase_;
  }

  // True while the unit is being programmed: its data is in the buffer still.
  [[nodiscard]] bool programming(std::size_t die_number, std::uint64_t unit, picoseconds now) const noexcept {
    for (const auto& one : dies_[die_number].recent)
      if (one.unit == unit) return one.done > now;
    return false;
  }

  // Forgets all that is under way.
  void reset_time() noexcept {
    for (die& d : dies_) d = {};
    for (busy_part& c : channels_) c = {};
  }

 private:
  struct programmed {
    std::uint64_t unit = ~std::uint64_t{0};
    picoseconds done = 0;
  };
  struct die {
    picoseconds reads_end = 0;
    picoseconds busy = 0;  // with programs and erases
    std::array<programmed, 4> recent;
    std::size_t next_recent = 0;
  };

  busy_part& channel_of(std::size_t die_number) noexcept { return channels_[die_number % channels_.size()]; }

  picoseconds read_;
  picoseconds program_;
  picoseconds erase_;
  picoseconds suspend_;
  byte_time transfer_;
  std::vector<busy_part> channels_;
  std::vector<die> dies_;
};

}  // namespace pmlab::blocks::detail
