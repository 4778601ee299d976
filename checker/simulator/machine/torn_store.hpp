// The order in which the words of one store become durable.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pmlab::simulator {

// Calls visit(word) for each word from `first` to `last`. No store of more than 8 bytes is atomic: its words may become
// durable in any order. Now this one, now that, by the number of `wide_stores` so far, which it counts.
template <class Visit>
void for_each_torn_word(std::size_t first, std::size_t last, std::uint64_t& wide_stores, Visit&& visit) {
  const bool backwards = first != last && (++wide_stores & 1) != 0;
  for (std::size_t n = first; n <= last; ++n) visit(backwards ? first + last - n : n);
}

}  // namespace pmlab::simulator
