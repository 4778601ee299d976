// The order in which operations choose the places of a volume, or the keys of a store.
#pragma once

#include <pmlab/base/error.hpp>
#include "bench/support/lists.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace pmlab::store_bench {

enum class order : std::uint8_t {
  random,      // each with the same probability; fill, load, insert, erase: each once, in a random order
  sequential,  // one after the other, each thread in its own part; load, insert, erase: each once
  zipfian,     // with parameter 0.99, scattered. Load: about 80 % of the puts meet a key that is there
  uniform,     // each key with the same probability. Load: about 15 % of the puts meet a key that is there
  latest       // the youngest keys are the most popular ones
};

[[nodiscard]] constexpr std::string_view to_string(order value) noexcept {
  constexpr std::array<std::string_view, 5> names{"random", "sequential", "zipfian", "uniform", "latest"};
  return names[static_cast<std::size_t>(value)];
}

// The orders of a list, among those that are `known`. Throws pmlab::error: there is no pattern 'such' `of_what`.
[[nodiscard]] inline std::vector<order> orders_among(std::span<const order> known, const std::string& list,
                                                     std::string_view of_what, const std::string& remedy) {
  return bench::list_of(list, [&](const std::string& word) {
    const auto at = std::ranges::find(known, word, to_string);
    if (at == known.end()) throw error(fmt::format("there is no pattern '{}'{}", word, of_what), remedy);
    return *at;
  });
}

}  // namespace pmlab::store_bench
