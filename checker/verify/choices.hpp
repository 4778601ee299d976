// The choices that are examined at a crash point: all of them if they are few, otherwise the most telling.
#pragma once

#include <pmlab/base/random.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace pmlab::verify {

inline constexpr std::size_t nothing_fixed = std::numeric_limits<std::size_t>::max();

// Calls visit(c) for at most `states` choices (two at least, four with places of both kinds), in which the place
// `fixed` has all that it has. There are `places` places, `lines` lines of memory before units of drives; place i has
// most(i) >= 1 stores or versions. `c` is room that is used again.
template <class Most, class Visit>
void for_each_choice(std::vector<std::uint32_t>& c, std::size_t places, std::size_t lines, std::size_t fixed,
                     std::size_t states, splitmix64& random, Most&& most, Visit&& visit) {
  std::size_t combinations = 1;
  for (std::size_t i = 0; i < places && combinations <= states; ++i)
    if (i != fixed) combinations *= most(i) + 1;
  c.assign(places, 0);
  if (fixed != nothing_fixed) c[fixed] = most(fixed);

  if (combinations <= states) {
    for (bool more = true; more;) {
      visit(c);
      std::size_t digit = 0;
      for (more = false; digit < c.size() && !more; ++digit) {
        if (digit == fixed) continue;
        if (c[digit] < most(digit)) {
          ++c[digit];
          more = true;
        } else {
          c[digit] = 0;
        }
      }
    }
    return;
  }

  visit(c);  // all others behind
  for (std::size_t i = 0; i < places; ++i) c[i] = most(i);
  visit(c);  // all ahead
  std::size_t made = 2;
  if (lines != 0 && lines != places) {
    // One kind outruns the other.
    for (const bool lines_ahead : {true, false}) {
      for (std::size_t i = 0; i < places; ++i) c[i] = (i < lines) == lines_ahead || i == fixed ? most(i) : 0;
      visit(c);
      ++made;
    }
  }
  for (; made < states; ++made) {
    const std::size_t special = random.below(places);
    const std::uint64_t kind = random.below(3);
    for (std::size_t i = 0; i < places; ++i) {
      if (kind == 0) c[i] = i == special ? static_cast<std::uint32_t>(random.below(most(i))) : most(i);
      if (kind == 1) c[i] = i == special ? 1 + static_cast<std::uint32_t>(random.below(most(i))) : 0;
      if (kind == 2) c[i] = static_cast<std::uint32_t>(random.below(most(i) + 1));
    }
    if (fixed != nothing_fixed) c[fixed] = most(fixed);
    visit(c);
  }
}

}  // namespace pmlab::verify
