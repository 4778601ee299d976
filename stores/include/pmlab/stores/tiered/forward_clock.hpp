// The clock of the loss bound: a clock that may be set back, read as one that only goes forward.
//
// A clock that jumps back would make changes look younger than they are, by as much as it jumps. Here its time goes on
// from the latest reading. A small step back is no jump: threads that read one clock see it so.
#pragma once

#include <pmlab/blocks/clock.hpp>

#include <atomic>
#include <cstdint>

namespace pmlab::stores::detail::tiered {

// Thread safety: from any thread, if `Clock` allows that.
template <blocks::drive_clock Clock>
class forward_clock {
 public:
  // `step`: picoseconds that are no jump; the time stands still meanwhile.
  forward_clock(Clock clock, std::uint64_t step) : clock_(clock), step_(step) {}

  // Picoseconds. Misses no more of the real time than `step`, and for each jump the time since the reading before.
  [[nodiscard]] std::uint64_t now() noexcept {
    std::uint64_t added = added_.load(std::memory_order_acquire);
    const std::uint64_t given = clock_.now();
    const std::uint64_t time = given + added;
    std::uint64_t latest = latest_.load(std::memory_order_acquire);
    while (time > latest)
      if (latest_.compare_exchange_weak(latest, time, std::memory_order_acq_rel)) return time;
    // One of the threads that see a jump adds it.
    if (latest - time > step_) added_.compare_exchange_strong(added, latest - given, std::memory_order_acq_rel);
    return latest;
  }
  // What the clock shows at `time`, a time of this class.
  [[nodiscard]] std::uint64_t shown_at(std::uint64_t time) const noexcept {
    const std::uint64_t added = added_.load(std::memory_order_acquire);
    return time > added ? time - added : 0;
  }

 private:
  Clock clock_;
  std::uint64_t step_;
  std::atomic<std::uint64_t> latest_{0};
  std::atomic<std::uint64_t> added_{0};
};

}  // namespace pmlab::stores::detail::tiered
