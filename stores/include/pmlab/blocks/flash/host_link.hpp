// The host's side of a drive in time: commands and transfers.
#pragma once

#include <pmlab/blocks/flash/profile.hpp>
#include <pmlab/blocks/flash/time.hpp>

#include <algorithm>
#include <cstdint>

namespace pmlab::blocks::detail {

// One drive's controller and connection. Not thread-safe.
class host_link {
 public:
  explicit host_link(const drive_profile& profile)
      : read_command_(picoseconds_of(profile.read_command_ns)),
        write_command_(picoseconds_of(profile.write_command_ns)),
        read_time_(profile.host_read_mb_per_s),
        write_time_(profile.host_write_mb_per_s),
        half_duplex_(profile.half_duplex) {}

  // The controller takes a command: returns when it has understood it.
  picoseconds read_command(picoseconds now) noexcept { return commands_.take(now, read_command_); }
  picoseconds write_command(picoseconds now) noexcept { return commands_.take(now, write_command_); }

  // Sends `bytes` bytes to the host, of which the first `piece` is there at `first` and the last at `last`. Returns
  // when the host has them.
  picoseconds send(std::uint64_t bytes, std::uint64_t piece, picoseconds now, picoseconds first,
                   picoseconds last) noexcept {
    return std::max(reads_.take(now, first, read_time_.of(bytes)), last + read_time_.of(std::min(bytes, piece)));
  }
  // Receives `bytes` bytes, from `now` on. Returns when the drive has them.
  picoseconds receive(std::uint64_t bytes, picoseconds now, picoseconds ready) noexcept {
    return (half_duplex_ ? reads_ : writes_).take(now, ready, write_time_.of(bytes));
  }

  // Forgets all that is under way.
  void reset_time() noexcept {
    commands_ = {};
    reads_ = {};
    writes_ = {};
  }

 private:
  picoseconds read_command_;
  picoseconds write_command_;
  byte_time read_time_;
  byte_time write_time_;
  bool half_duplex_;
  busy_part commands_;
  busy_part reads_;
  busy_part writes_;
};

}  // namespace pmlab::blocks::detail
