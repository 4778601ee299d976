// Times of a modelled drive, and the queue in front of a part that does one thing at a time.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace pmlab::blocks {

// A time on the clock of the model, and differences of times. Integers, so that every machine rounds alike; 2^64 of
// them are 213 days.
using picoseconds = std::uint64_t;

namespace detail {

[[nodiscard]] inline picoseconds picoseconds_of(double ns) noexcept {
  return static_cast<picoseconds>(std::llround(ns * 1000));
}

// The time of a byte at so many 10^6 bytes per second, in 2^-16 picoseconds.
class byte_time {
 public:
  explicit byte_time(double mb_per_s) noexcept
      : scaled_(static_cast<std::uint64_t>(std::llround(1e6 / mb_per_s * 65536))) {}

  [[nodiscard]] picoseconds of(std::uint64_t bytes) const noexcept { return bytes * scaled_ >> 16; }

 private:
  std::uint64_t scaled_;
};

// A part that is busy with one thing at a time. Work is queued when it is asked for, even if its input arrives later:
// two waits for the same instant are taken as the longer one, and a late input holds up no other work.
struct busy_part {
  picoseconds free = 0;

  // Work asked for at `now`, whose input arrives at `ready`: returns when it is done.
  picoseconds take(picoseconds now, picoseconds ready, picoseconds time) noexcept {
    free = std::max(free, now) + time;
    return std::max(free, ready + time);
  }
  picoseconds take(picoseconds now, picoseconds time) noexcept { return take(now, now, time); }
};

}  // namespace detail
}  // namespace pmlab::blocks
