// The hash of a key: part of the layout, so it never changes.
#pragma once

#include <pmlab/base/hash.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace pmlab::strings::detail {

__extension__ using uint128 = unsigned __int128;

[[nodiscard]] constexpr std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) noexcept {
  const uint128 product = static_cast<uint128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

// Eight bytes at a time: words are mixed in by multiplication to 128 bits, whose halves are folded.
[[nodiscard]] inline std::uint64_t hash_of(std::string_view key) noexcept {
  constexpr std::uint64_t start = golden_ratio;
  constexpr std::uint64_t odd = 0xd6e8feb86659fd93;
  std::uint64_t state = start ^ (key.size() * odd);
  std::size_t done = 0;
  for (; key.size() - done >= sizeof(std::uint64_t); done += sizeof(std::uint64_t)) {
    std::uint64_t word;
    std::memcpy(&word, key.data() + done, sizeof word);
    state = folded_product(state ^ word, odd) + start;
  }
  std::uint64_t last = 0;
  if (done < key.size()) std::memcpy(&last, key.data() + done, key.size() - done);
  return folded_product(folded_product(state ^ last, odd) ^ start, odd | start);
}

}  // namespace pmlab::strings::detail
