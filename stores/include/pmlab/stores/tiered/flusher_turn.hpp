// When the flusher of a store leaves flushes to the writers.
//
// A flusher that gets little of a processor may lose it in the middle of a flush. Writers wait for that flush then, and
// changes become older than the loss bound. So a flusher that was woken late flushes nothing for a while, as long as
// writers go on: these flush themselves when it is their turn.
#pragma once

#include <pmlab/stores/tiered/log.hpp>

#include <algorithm>
#include <cstdint>

namespace pmlab::stores::detail::tiered {

// Times are picoseconds of the store's clock. Thread safety: `writers_turn` from any thread, the rest is the flusher's.
class flusher_turn {
 public:
  // `half` the loss bound.
  explicit flusher_turn(std::uint64_t half) noexcept : half_(half) {}

  // From then on a writer flushes: the oldest change is five eighths as old as the bound.
  [[nodiscard]] std::uint64_t writers_turn(const unflushed& waiting) const noexcept {
    return waiting.oldest + half_ + half_ / 4;
  }
  // How long the flusher pauses before it looks again whether writers go on.
  [[nodiscard]] std::uint64_t pause() const noexcept { return half_ / 8; }
  // It is to be woken at `due`.
  void sleeps_until(std::uint64_t due) noexcept { due_ = due; }
  // It was woken at `now`.
  void is_awake(std::uint64_t now) noexcept {
    if (now > due_ + std::max(half_ / 8, least_lateness)) distrusted_until_ = now + distrust * half_;
  }
  // True: it leaves what is `waiting` to writers. REQUIRES: something is.
  [[nodiscard]] bool leaves_to_writers(const unflushed& waiting, std::uint64_t now) const noexcept {
    const bool do_writers_go_on = now < waiting.newest + half_ / 4;
    return do_writers_go_on && (now < distrusted_until_ || now >= writers_turn(waiting));
  }

 private:
  static constexpr std::uint64_t least_lateness = 1'000'000'000;  // 1 ms: timers are late by less
  static constexpr std::uint64_t distrust = 8;                    // halves of the bound, behind the last late waking

  std::uint64_t half_;
  std::uint64_t due_ = ~std::uint64_t{0} / 2;  // it has not slept yet
  std::uint64_t distrusted_until_ = 0;
};

}  // namespace pmlab::stores::detail::tiered
