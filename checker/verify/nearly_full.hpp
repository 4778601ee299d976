// Stores on drives that are soon full: what is erased can be written again.
//
// A store is filled, half of what it took is erased, and that half is written again. Every erasure must be accepted,
// and two fifths of the filled units must be written again, but for one unit: a store that takes few of them loses more
// than a tenth of its space when a segment has room for no further one. One unit must always be taken. All units are of
// one size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace pmlab::verify {

// `units`: keys, or blocks, by number. `is_there(unit)`: has a value; `put(unit)` and `erase(unit)`: false if there was
// no room. "" or the violation.
template <class IsThere, class Put, class Erase>
[[nodiscard]] std::string half_is_written_again(std::size_t units, IsThere&& is_there, Put&& put, Erase&& erase) {
  std::vector<std::size_t> taken;
  for (std::size_t u = 0; u < units; ++u)
    if (put(u) || is_there(u)) taken.push_back(u);
  const std::string filled = "of " + std::to_string(units) + " values " + std::to_string(taken.size()) + " found room";
  std::size_t again = 0;
  for (std::size_t i = 0; i < taken.size(); i += 2)
    if (!erase(taken[i])) return filled + ", and the erasure of number " + std::to_string(taken[i]) + " finds none";
  for (std::size_t i = 0; i < taken.size(); i += 2)
    if (put(taken[i])) ++again;
  const std::size_t wanted = taken.size() < 2 ? 0 : std::max<std::size_t>(taken.size() * 2 / 5, 2) - 1;
  if (again >= wanted) return {};
  return filled + "; half of them were erased, and only " + std::to_string(again) + " could be written again, not " +
         std::to_string(wanted);
}

}  // namespace pmlab::verify
