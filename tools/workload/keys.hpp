// Which key the i-th record has, and which values are written under it.
//
// Both are computed, never stored: a benchmark that knows how many records there are knows every key, and a value that
// an index returns shows by itself whether it was ever written under that key.
#pragma once

#include <cstdint>

namespace pmlab::workload {

namespace detail {

// A bijection of the 64-bit words whose output bits each depend on all input bits (the finaliser of SplitMix64).
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

// Undoes `word ^ (word >> shift)`.
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

// Keeps index 0 from having key 0, the one fixed point of mix_bits.
inline constexpr std::uint64_t key_offset = 0x9e3779b97f4a7c15;

inline constexpr int sequence_bits = 40;

// A 24-bit hash of the key that has nothing in common with key_of.
[[nodiscard]] constexpr std::uint64_t key_checksum(std::uint64_t key) noexcept {
  return ((key ^ (key >> 32)) * 0x9fb21c651e98df25) >> sequence_bits;
}

}  // namespace detail

// The key of the record at `index`. A bijection of 0..2^64-1: no two records share a key, and neighbours are scattered
// over the whole range.
[[nodiscard]] constexpr std::uint64_t key_of(std::uint64_t index) noexcept {
  return detail::mix_bits(index + detail::key_offset);
}

// The index whose record has this key: index_of(key_of(i)) == i.
[[nodiscard]] constexpr std::uint64_t index_of(std::uint64_t key) noexcept {
  return detail::unmix_bits(key) - detail::key_offset;
}

// The number of sequences that values can tell apart: value_of takes its `sequence` modulo this.
inline constexpr std::uint64_t sequences = std::uint64_t{1} << detail::sequence_bits;

// The value that the write number `sequence` puts under `key`: a checksum of the key (24 bits), then the sequence
// (40 bits). Loaded records have sequence 0; see generator.hpp and trace.hpp for who uses which of the others.
[[nodiscard]] constexpr std::uint64_t value_of(std::uint64_t key, std::uint64_t sequence) noexcept {
  return (detail::key_checksum(key) << detail::sequence_bits) | (sequence & (sequences - 1));
}

// True if `value` is value_of(key, s) for some s. A value of another key passes once in 2^24 (17 million) times.
[[nodiscard]] constexpr bool is_value_of(std::uint64_t value, std::uint64_t key) noexcept {
  return (value >> detail::sequence_bits) == detail::key_checksum(key);
}

[[nodiscard]] constexpr std::uint64_t sequence_of(std::uint64_t value) noexcept { return value & (sequences - 1); }

}  // namespace pmlab::workload
