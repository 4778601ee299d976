// S3-FIFO: three queues prevent entries that are read once from evicting entries that are read again, after Yang et
// al., SOSP'23 [S3FIFO].
//
// The default: for a few keys that are read often, and above all if scans and one-time reads mix with a working set.
//
// New entries enter a small queue. Those that are hit there move to the main queue; the others are evicted soon, and
// only their tag stays, in the ghost queue: an entry that is inserted again while its tag is there enters the main
// queue at once. In the main queue an entry that was hit is inserted again.
//
// Difference from the paper: each set has queues of its own, a small one of two entries and a main one of five, with
// six ghosts.
#pragma once

#include <pmlab/cache/eviction/eviction.hpp>

#include <algorithm>
#include <cstdint>

namespace pmlab::cache {

// Word: hits of each way, up to 3, in two bits. Side 0: the ways in the order of insertion, the last one first (0-20),
// and which of them are in the main queue (21-27). Side 1: the ghosts' tags plus one, so that 0 is none, the last one
// lowest; ten bits each.
class s3_fifo {
 public:
  [[nodiscard]] bool uses_side_words() const noexcept { return true; }
  [[nodiscard]] eviction_state initial() const noexcept { return {0, {detail::way_order::initial, 0}}; }

  [[nodiscard]] std::uint32_t hit(std::uint32_t word, unsigned way) const noexcept {
    return hits_of(word, way) == most_hits ? word : word + (1U << (2 * way));
  }

  [[nodiscard]] unsigned victim(eviction_state& state, const tags_of_set& tags) const noexcept {
    while (small_size(state) > small_target) {
      const unsigned way = oldest(state, false);
      if (hits_of(state.word, way) == 0) {
        remember(state, tags[way]);
        return way;
      }
      enter_main(state, way);
    }
    for (;;) {
      const unsigned way = oldest(state, true);
      if (hits_of(state.word, way) == 0) return way;
      state.word -= 1U << (2 * way);
      put_first(state, way);
    }
  }

  void filled(eviction_state& state, unsigned way, tag_type tag) const noexcept {
    set_hits(state, way, 0);
    put_first(state, way);
    if (forget(state, tag))
      state.side[0] |= main_bit(way);
    else
      state.side[0] &= ~main_bit(way);
  }

  [[nodiscard]] bool is_sound(const eviction_state& state) const noexcept {
    return detail::way_order::is_sound(order_of(state)) && state.word >> (2 * ways) == 0;
  }

 private:
  static constexpr std::uint32_t most_hits = 3;
  // Before the new entry is inserted: two with it.
  static constexpr unsigned small_target = 1;
  static constexpr unsigned ghosts = 6;
  static constexpr std::uint64_t order_mask = (std::uint64_t{1} << eviction_bits) - 1;
  static constexpr std::uint64_t tag_mask = (std::uint64_t{1} << tag_bits) - 1;

  [[nodiscard]] static std::uint64_t main_bit(unsigned way) noexcept {
    return std::uint64_t{1} << (eviction_bits + way);
  }
  [[nodiscard]] static bool in_main(const eviction_state& state, unsigned way) noexcept {
    return (state.side[0] & main_bit(way)) != 0;
  }
  [[nodiscard]] static std::uint32_t hits_of(std::uint32_t word, unsigned way) noexcept {
    return (word >> (2 * way)) & most_hits;
  }
  static void set_hits(eviction_state& state, unsigned way, std::uint32_t hits) noexcept {
    state.word = (state.word & ~(most_hits << (2 * way))) | hits << (2 * way);
  }
  [[nodiscard]] static std::uint32_t order_of(const eviction_state& state) noexcept {
    return static_cast<std::uint32_t>(state.side[0] & order_mask);
  }
  static void put_first(eviction_state& state, unsigned way) noexcept {
    state.side[0] = (state.side[0] & ~order_mask) | detail::way_order::with_first(order_of(state), way);
  }
  static void enter_main(eviction_state& state, unsigned way) noexcept {
    state.side[0] |= main_bit(way);
    set_hits(state, way, 0);
    put_first(state, way);
  }
  [[nodiscard]] static unsigned small_size(const eviction_state& state) noexcept {
    unsigned size = 0;
    for (unsigned way = 0; way < ways; ++way) size += in_main(state, way) ? 0 : 1;
    return size;
  }
  // REQUIRES: there is one; the caller has checked the sizes.
  [[nodiscard]] static unsigned oldest(const eviction_state& state, bool of_main) noexcept {
    unsigned position = ways - 1;
    while (position > 0 && in_main(state, detail::way_order::at(order_of(state), position)) != of_main) --position;
    return detail::way_order::at(order_of(state), position);
  }

  // A tag of all ones would overflow when 1 is added.
  [[nodiscard]] static std::uint64_t stored(tag_type tag) noexcept {
    return std::min<std::uint64_t>(tag + 1, tag_mask);
  }
  static void remember(eviction_state& state, tag_type tag) noexcept {
    constexpr std::uint64_t all = (std::uint64_t{1} << (ghosts * tag_bits)) - 1;
    state.side[1] = (state.side[1] << tag_bits | stored(tag)) & all;
  }
  // True if the tag was there.
  static bool forget(eviction_state& state, tag_type tag) noexcept {
    for (unsigned g = 0; g < ghosts; ++g) {
      if (((state.side[1] >> (g * tag_bits)) & tag_mask) != stored(tag)) continue;
      state.side[1] &= ~(tag_mask << (g * tag_bits));
      return true;
    }
    return false;
  }
};

static_assert(eviction_policy<s3_fifo>);

}  // namespace pmlab::cache
