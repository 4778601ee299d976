// Sets of slots of a leaf: a bit for each.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <bit>
#include <concepts>
#include <cstddef>
#include <optional>

namespace pmlab::indexes::detail {

// Calls function(slot) for every member of `set`, ascending.
template <std::unsigned_integral Set, class Function>
void for_each_slot(Set set, Function&& function) {
  for (; set != 0; set &= set - 1) function(static_cast<std::size_t>(std::countr_zero(set)));
}

// The first member of `set` for which is_wanted(slot).
template <std::unsigned_integral Set, class IsWanted>
[[nodiscard]] std::optional<std::size_t> first_slot(Set set, IsWanted&& is_wanted) {
  for (; set != 0; set &= set - 1) {
    const auto slot = static_cast<std::size_t>(std::countr_zero(set));
    if (is_wanted(slot)) return slot;
  }
  return std::nullopt;
}

}  // namespace pmlab::indexes::detail
