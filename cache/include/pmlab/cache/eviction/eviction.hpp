// The concept of an eviction policy: it selects, set by set, the entry that is replaced by a new one.
//
// A policy keeps a word of 21 bits in each set, which readers change when they hit (one compare-and-swap, and none if
// nothing changes), and a set of side words, which only the holder of the set's lock reads and writes.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>

namespace pmlab::cache {

// Entries of a set: a set is two cache lines with a header of two words.
inline constexpr unsigned ways = 7;

// The bits of a policy's word.
inline constexpr unsigned eviction_bits = 21;

// State of a policy beside its word.
using side_words = std::array<std::uint64_t, 2>;

// The part of an entry's hash by which a policy remembers it after it has gone.
inline constexpr unsigned tag_bits = 10;
// Its lowest tag_bits count.
using tag_type = std::uint32_t;
// The tag of the entry in each way.
using tags_of_set = std::array<tag_type, ways>;

// State of a policy for one set.
struct eviction_state {
  std::uint32_t word = 0;  // eviction_bits of it; readers change it
  side_words side{};       // only under the set's lock
};

// All functions are called from many threads at a time, for different sets; they keep nothing in the policy itself.
template <class E>
concept eviction_policy = requires(const E& policy, eviction_state& state, std::uint32_t word, unsigned way,
                                   tag_type tag, const tags_of_set& tags) {
  // False: side words need no memory.
  { policy.uses_side_words() } -> std::same_as<bool>;
  // The state of an empty set.
  { policy.initial() } -> std::same_as<eviction_state>;
  // The word after a hit on `way`.
  { policy.hit(word, way) } -> std::same_as<std::uint32_t>;
  // All ways are in use: returns the way to replace. `tags[i]`: of the entry in way i, if the policy uses side words.
  { policy.victim(state, tags) } -> std::same_as<unsigned>;
  // A new entry is in `way`.
  { policy.filled(state, way, tag) } -> std::same_as<void>;
  // True if no operation of the policy can have left this state.
  { policy.is_sound(state) } -> std::same_as<bool>;
};

namespace detail {

// The seven ways in an order, three bits each; position 0 is the lowest.
class way_order {
 public:
  static constexpr std::uint32_t initial = 0b110'101'100'011'010'001'000;
  static constexpr unsigned bits = 3;

  [[nodiscard]] static constexpr unsigned at(std::uint32_t order, unsigned position) noexcept {
    return (order >> (bits * position)) & 7;
  }

  // Finds the position without a branch, which the CPU could not predict.
  [[nodiscard]] static constexpr unsigned position_of(std::uint32_t order, unsigned way) noexcept {
    const std::uint32_t different = order ^ (lowest_bits * way);
    const std::uint32_t equal = ~(different | different >> 1 | different >> 2) & lowest_bits;
    return static_cast<unsigned>(std::countr_zero(equal)) / bits;
  }

  // `way` first, the others behind it as they were.
  [[nodiscard]] static constexpr std::uint32_t with_first(std::uint32_t order, unsigned way) noexcept {
    const unsigned position = position_of(order, way);
    const std::uint32_t before = order & ((1U << (bits * position)) - 1);
    const std::uint32_t up_to_it = (1U << (bits * (position + 1))) - 1;
    return (order & ~up_to_it) | before << bits | way;
  }

  [[nodiscard]] static constexpr bool is_sound(std::uint32_t order) noexcept {
    unsigned seen = 0;
    for (unsigned position = 0; position < ways; ++position) seen |= 1U << at(order, position);
    return seen == (1U << ways) - 1;
  }

 private:
  static constexpr std::uint32_t lowest_bits = 0b001'001'001'001'001'001'001;  // lowest bits of each position
};

static_assert(way_order::with_first(way_order::initial, 0) == way_order::initial);
static_assert(way_order::at(way_order::with_first(way_order::initial, 6), 0) == 6);
static_assert(way_order::position_of(way_order::initial, 5) == 5);
static_assert(way_order::is_sound(way_order::with_first(way_order::initial, 3)));

}  // namespace detail

}  // namespace pmlab::cache
