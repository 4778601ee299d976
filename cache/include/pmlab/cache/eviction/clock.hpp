// CLOCK: a hand moves around the set and gives every entry that was hit since its last pass a second chance.
//
// Use it if many threads hit the same entries: a second hit on an entry changes nothing, so that readers share the
// set's line instead of taking it from each other.
#pragma once

#include <pmlab/cache/eviction/eviction.hpp>

#include <cstdint>

namespace pmlab::cache {

// Word: a bit for each way that was hit (0-6), where the hand is (7-9).
struct clock {
  [[nodiscard]] bool uses_side_words() const noexcept { return false; }
  [[nodiscard]] eviction_state initial() const noexcept { return {}; }
  [[nodiscard]] std::uint32_t hit(std::uint32_t word, unsigned way) const noexcept { return word | 1U << way; }
  [[nodiscard]] unsigned victim(eviction_state& state, const tags_of_set& /*tags*/) const noexcept {
    unsigned hand = state.word >> ways;
    while ((state.word & 1U << hand) != 0) {
      state.word &= ~(1U << hand);
      hand = next(hand);
    }
    state.word = (state.word & was_hit) | next(hand) << ways;
    return hand;
  }
  void filled(eviction_state& state, unsigned way, tag_type /*tag*/) const noexcept { state.word &= ~(1U << way); }
  [[nodiscard]] bool is_sound(const eviction_state& state) const noexcept { return state.word >> ways < ways; }

 private:
  static constexpr std::uint32_t was_hit = (1U << ways) - 1;
  [[nodiscard]] static constexpr unsigned next(unsigned hand) noexcept { return hand + 1 == ways ? 0 : hand + 1; }
};

static_assert(eviction_policy<clock>);

}  // namespace pmlab::cache
