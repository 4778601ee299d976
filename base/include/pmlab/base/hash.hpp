// Mixing the bits of words, and of bytes.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pmlab {

// 2^64 divided by the golden ratio, odd. The upper bits of a product with it are spread evenly over consecutive words,
// and over words at equal distances (Fibonacci hashing).
inline constexpr std::uint64_t golden_ratio = 0x9e3779b97f4a7c15;

// A bijection of the 64-bit words whose output bits each depend on all input bits: the finaliser of SplitMix64. 0 is
// its fixed point.
[[nodiscard]] constexpr std::uint64_t mix_bits(std::uint64_t word) noexcept {
  word = (word ^ (word >> 30)) * 0xbf58476d1ce4e5b9;
  word = (word ^ (word >> 27)) * 0x94d049bb133111eb;
  return word ^ (word >> 31);
}

// The x with x * odd == 1 modulo 2^64. Each step of Newton's iteration doubles the number of correct low bits.
[[nodiscard]] constexpr std::uint64_t inverse_of(std::uint64_t odd) noexcept {
  std::uint64_t inverse = odd;
  for (int correct_bits = 3; correct_bits < 64; correct_bits *= 2) inverse *= 2 - odd * inverse;
  return inverse;
}

// The w with (w ^ (w >> shift)) == word.
[[nodiscard]] constexpr std::uint64_t undo_shift(std::uint64_t word, int shift) noexcept {
  std::uint64_t result = word;
  for (int done = shift; done < 64; done += shift) result = word ^ (result >> shift);
  return result;
}

// mix_bits(unmix_bits(w)) == w.
[[nodiscard]] constexpr std::uint64_t unmix_bits(std::uint64_t word) noexcept {
  word = undo_shift(word, 31) * inverse_of(0x94d049bb133111eb);
  word = undo_shift(word, 27) * inverse_of(0xbf58476d1ce4e5b9);
  return undo_shift(word, 30);
}

// 64 bits that depend on all of [start, start + bytes), on `bytes` and on `seed`: for hash tables, where each step is a
// few instructions in the code of the caller. About 8 bytes per nanosecond. Places of keys on media come from it, so it
// may not change. The same on every machine of x86-64's byte order. For finding damage: checksum.
[[nodiscard]] inline std::uint64_t hash_of_bytes(const void* start, std::size_t bytes,
                                                 std::uint64_t seed = 0) noexcept {
  const auto* at = static_cast<const unsigned char*>(start);
  std::uint64_t lanes[4] = {seed + golden_ratio, mix_bits(seed + 1), mix_bits(seed + 2), mix_bits(seed + 3)};
  const auto take = [](std::uint64_t state, std::uint64_t word) {
    return std::rotl((state ^ word) * golden_ratio, 29);
  };
  std::size_t left = bytes;
  for (; left >= sizeof lanes; left -= sizeof lanes, at += sizeof lanes) {
    std::uint64_t words[4];
    std::memcpy(words, at, sizeof words);
    for (int i = 0; i < 4; ++i) lanes[i] = take(lanes[i], words[i]);
  }
  for (; left > 0;) {
    const std::size_t part = left < sizeof(std::uint64_t) ? left : sizeof(std::uint64_t);
    std::uint64_t word = 0;
    std::memcpy(&word, at, part);
    lanes[0] = take(lanes[0], word);
    left -= part;
    at += part;
  }
  std::uint64_t all = bytes;
  for (const std::uint64_t lane : lanes) all = mix_bits(all ^ lane) * golden_ratio;
  return mix_bits(all);
}

}  // namespace pmlab
