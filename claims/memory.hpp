// The claims M1 to M26 about persistent memory, of [Han21]'s section 2, and the cases of suite `paper` that decide them.
//
// What a word of the claims is taken to mean, everywhere:
//   "the same", "about the same", "as much"      within 20 %
//   "much", "sharply"                            half as much again, or a quarter less
//   "falls", "degrades"                          by a tenth or more
//   "about 7", "about 2"                         what rounds to it
#pragma once

#include "claims/claim.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace pmlab::claims {

// By topic; in the order of the paper within each.
[[nodiscard]] std::vector<claim> latency_claims();
[[nodiscard]] std::vector<claim> thread_claims();
[[nodiscard]] std::vector<claim> granularity_claims();
[[nodiscard]] std::vector<claim> bandwidth_claims();
[[nodiscard]] std::vector<claim> mixed_claims();
[[nodiscard]] std::vector<claim> comparison_claims();

// All of them, M1 first; made once.
[[nodiscard]] const std::vector<claim>& memory_claims();

namespace detail {

inline constexpr double same_percent = 20;
inline constexpr double same = 1.2;
inline constexpr double much = 1.5;
inline constexpr double sharply_less = 0.75;
inline constexpr double falls = 0.9;
inline constexpr double gb_per_gib = 1.073741824;

// "64 KB" of a size that the suite writes as "64K".
[[nodiscard]] std::string readable_size(std::string_view bytes);

// Cases of suite `paper`; sizes as the suite writes them.
[[nodiscard]] quantity read_latency(std::string_view pattern, std::string_view bytes);   // of one read, one thread
[[nodiscard]] quantity write_latency(std::string_view pattern, std::string_view bytes);  // fenced
// Latency of `threads` threads over that of one. `side`: "read" or "write".
[[nodiscard]] quantity slowed_by_threads(std::string_view side, std::string_view bytes, unsigned threads);
// Bandwidths, each thread in a part of its own.
[[nodiscard]] quantity load(std::string_view pattern, std::string_view bytes, unsigned threads);
[[nodiscard]] quantity store(std::string_view pattern, std::string_view bytes, unsigned threads);  // never fenced
[[nodiscard]] quantity store_then_fence(std::string_view pattern, std::string_view bytes, unsigned threads);

// The bandwidth at `bytes` over the highest at any size. `kind` is one of the three above.
using bandwidth = quantity (*)(std::string_view pattern, std::string_view bytes, unsigned threads);
[[nodiscard]] quantity share_of_highest(bandwidth kind, std::string_view pattern, std::string_view bytes,
                                        unsigned threads, const std::vector<std::string_view>& sizes);

inline const std::vector<std::string_view>& bandwidth_sizes() {
  static const std::vector<std::string_view> sizes = {"64", "128", "256", "512", "1K", "4K", "64K"};
  return sizes;
}
inline const std::vector<std::string_view>& then_fence_sizes() {
  static const std::vector<std::string_view> sizes = {"64", "256", "1K", "4K", "64K"};
  return sizes;
}

}  // namespace detail
}  // namespace pmlab::claims
