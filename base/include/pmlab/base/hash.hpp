// Mixing the bits of words.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <cstdint>

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

}  // namespace pmlab
