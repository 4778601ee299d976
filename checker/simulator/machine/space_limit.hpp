// When a memory has no room for another block, so that `full` can be tried: for once, for a while, for good.
#pragma once

#include <pmlab/base/hash.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>

namespace pmlab::simulator {

// Thread safety: none; fibers share one kernel thread.
class space_limit {
 public:
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  // Which of the allocations from now on are refused.
  struct plan {
    std::uint64_t spare = never;       // so many find room in any case
    std::uint64_t refused = never;     // how many of the following ones may be refused; then there is room again
    std::uint64_t one_in = 1;          // one in so many of these is refused
    std::uint64_t most_bytes = never;  // beyond so many allocated bytes there is never room
  };

  space_limit() = default;
  explicit space_limit(const plan& p) noexcept : plan_(p) {}

  // Called once for each block. `allocated`: bytes of the live blocks.
  [[nodiscard]] bool refuses(std::size_t bytes, std::size_t allocated) noexcept {
    const std::uint64_t number = asked_++;
    const bool in_window = number >= plan_.spare && number - plan_.spare < plan_.refused;
    const bool refused =
        allocated + bytes > plan_.most_bytes || (in_window && (number * scatter >> 32) % plan_.one_in == 0);
    refusals_ += refused ? 1 : 0;
    return refused;
  }
  // From now on there is room.
  void lift() noexcept { plan_ = {}; }
  // How many were refused so far.
  [[nodiscard]] std::uint64_t refusals() const noexcept { return refusals_; }

 private:
  static constexpr std::uint64_t scatter = golden_ratio;

  plan plan_;
  std::uint64_t asked_ = 0;
  std::uint64_t refusals_ = 0;
};

}  // namespace pmlab::simulator
