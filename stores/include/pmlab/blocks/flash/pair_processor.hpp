// The command processor of a key-value SSD in time: what its firmware does for a command, beside the flash.
//
// It never reads a clock: given times it answers with times, as page_ftl does. Commands have keys and values, so they
// do not go through page_ftl's host link. One processor takes them one after the other: it parses a command, looks the
// key up in the index, and moves the value's bytes; a put that replaces a record also gives up the earlier one.
#pragma once

#include <pmlab/blocks/flash/profile.hpp>
#include <pmlab/blocks/flash/time.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <mutex>

namespace pmlab::blocks {

// Thread safety: any thread may call. Calls are served in the order in which they are made.
class pair_processor {
 public:
  // REQUIRES: the profile `is_key_value()`.
  explicit pair_processor(const drive_profile& profile)
      : command_(detail::picoseconds_of(profile.pair_command_ns)),
        replace_(detail::picoseconds_of(profile.pair_replace_ns)),
        write_byte_(per_byte(profile.pair_write_byte_ns)),
        read_byte_(per_byte(profile.pair_read_byte_ns)) {}

  // A command arrives, with so many bytes of a value: returns when it begins to act.
  [[nodiscard]] picoseconds command(std::uint64_t bytes, picoseconds now) {
    return take(command_ + (bytes * write_byte_ >> 16), now);
  }
  // A put has replaced a record: returns when it is done.
  [[nodiscard]] picoseconds replaced(picoseconds now) { return take(replace_, now); }
  // So many bytes of the answer are there: returns when the host has them.
  [[nodiscard]] picoseconds answer(std::uint64_t bytes, picoseconds now) { return take(bytes * read_byte_ >> 16, now); }

  // The device is busy with its own work until then: it takes no command before.
  void busy_until(picoseconds time) {
    const std::scoped_lock lock(mutex_);
    processor_.free = std::max(processor_.free, time);
  }

  // Forgets what is under way.
  void reset_time() {
    const std::scoped_lock lock(mutex_);
    processor_ = {};
  }

 private:
  // The time of a byte, in 2^-16 picoseconds.
  [[nodiscard]] static std::uint64_t per_byte(double ns) noexcept {
    return static_cast<std::uint64_t>(std::llround(ns * 1000 * 65536));
  }
  [[nodiscard]] picoseconds take(picoseconds time, picoseconds now) {
    const std::scoped_lock lock(mutex_);
    return processor_.take(now, time);
  }

  picoseconds command_;
  picoseconds replace_;
  std::uint64_t write_byte_;
  std::uint64_t read_byte_;
  std::mutex mutex_;
  detail::busy_part processor_;
};

}  // namespace pmlab::blocks
