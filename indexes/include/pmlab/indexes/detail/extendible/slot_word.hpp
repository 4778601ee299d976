// The word of a slot that holds an entry of an extendible hash table: the upper bits of the entry's hash, and in the
// lower ones, which the slot's place implies, the marks of the index. Bit 0 is common to all: the slot holds an entry.
//
// An entry counts if its prefix is its segment's: the half that a split moved stays behind until it is overwritten.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <cstdint>

namespace pmlab::indexes::detail::extendible {

using slot_word = std::uint64_t;

inline constexpr slot_word live_bit = 1;

// True if the slot holds an entry whose hash begins with the same `local_depth` (never 0) bits as `hash`.
[[nodiscard]] constexpr bool occupied(slot_word word, std::uint64_t hash, unsigned local_depth) noexcept {
  return (word & live_bit) != 0 && ((word ^ hash) >> (64 - local_depth)) == 0;
}

// False: no operation leaves `word` in a segment that was made with depth `made` and this prefix. A slot without an
// entry has nothing but the marks of `kept`; an entry has the prefix that the segment was made with, whether it counts
// or a split has left it behind.
[[nodiscard]] constexpr bool can_hold(slot_word word, std::uint64_t prefix, unsigned made, slot_word kept) noexcept {
  return (word & live_bit) == 0 ? (word & ~kept) == 0 : (word ^ prefix) >> (64 - made) == 0;
}

}  // namespace pmlab::indexes::detail::extendible
