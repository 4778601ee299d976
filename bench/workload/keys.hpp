// Which key the i-th record has, and which values are written under it.
//
// Both are computed, never stored: a benchmark that knows the number of records knows every key, and a value that an
// index returns shows by itself whether it was ever written under that key.
#pragma once

#include <pmlab/base/hash.hpp>

#include <cstdint>

namespace pmlab::workload {

namespace detail {

// Keeps index 0 from having key 0, the one fixed point of mix_bits.
inline constexpr std::uint64_t key_offset = golden_ratio;

inline constexpr int sequence_bits = 40;

// A 24-bit hash of the key that has nothing in common with key_of.
[[nodiscard]] constexpr std::uint64_t key_checksum(std::uint64_t key) noexcept {
  return ((key ^ (key >> 32)) * 0x9fb21c651e98df25) >> sequence_bits;
}

}  // namespace detail

// The key of the record at `index`. A bijection of 0..2^64-1: no two records share a key, and neighbours are scattered
// over the whole range.
[[nodiscard]] constexpr std::uint64_t key_of(std::uint64_t index) noexcept {
  return mix_bits(index + detail::key_offset);
}

// The index whose record has this key: index_of(key_of(i)) == i.
[[nodiscard]] constexpr std::uint64_t index_of(std::uint64_t key) noexcept {
  return unmix_bits(key) - detail::key_offset;
}

// The number of different sequences in values: value_of takes its `sequence` modulo this.
inline constexpr std::uint64_t sequences = std::uint64_t{1} << detail::sequence_bits;

// The value of write number `sequence` under `key`: a checksum of the key (24 bits), then the sequence (40 bits).
// Loaded records have sequence 0; generator.hpp and trace.hpp define the others.
[[nodiscard]] constexpr std::uint64_t value_of(std::uint64_t key, std::uint64_t sequence) noexcept {
  return (detail::key_checksum(key) << detail::sequence_bits) | (sequence & (sequences - 1));
}

// True if `value` is value_of(key, s) for some s. A value of another key passes once in 2^24 (17 million) times.
[[nodiscard]] constexpr bool is_value_of(std::uint64_t value, std::uint64_t key) noexcept {
  return (value >> detail::sequence_bits) == detail::key_checksum(key);
}

[[nodiscard]] constexpr std::uint64_t sequence_of(std::uint64_t value) noexcept { return value & (sequences - 1); }

}  // namespace pmlab::workload
