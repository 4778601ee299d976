// The claims I1 to I11 about indexes, of [Han21]'s section 3, and the results of `pmlab run` that decide them.
//
// The words mean what memory.hpp says, and besides:
//   "by 20 to 30 %", "by 30 %"       a quarter less or more than that: 15 to 40 %, 22.5 to 40 %
//   "up to 1.8x", "up to 40 %"       the highest figure is at least that, less what "the same" allows
//   "not affected", "no gain"        by less than a tenth
//   "threads=most"                   the most threads that the result set has: 16 on simulated media
#pragma once

#include "claims/claim.hpp"

#include <string_view>
#include <vector>

namespace pmlab::claims {

// By topic.
[[nodiscard]] std::vector<claim> hybrid_claims();  // I1 to I4
[[nodiscard]] std::vector<claim> cache_claims();   // I5 to I10
[[nodiscard]] claim adaptive_claim();              // I11

// All of them, I1 first; made once.
[[nodiscard]] const std::vector<claim>& index_claims();

namespace detail {

inline constexpr std::string_view zipfian = "zipfian:0.99";

// A figure of an index in a phase of an experiment; `threads`: a number, or "most".
[[nodiscard]] quantity of_index(std::string_view experiment, std::string_view index, std::string_view threads,
                                std::string_view phase, std::string_view path);

// By how many percent `first` is below `second`; negative: above it.
[[nodiscard]] quantity percent_below(quantity first, quantity second);

}  // namespace detail
}  // namespace pmlab::claims
