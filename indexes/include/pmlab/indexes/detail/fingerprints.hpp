// Fingerprints of a leaf's keys: a byte for each slot, in DRAM, all compared at once.
#pragma once

#include <pmlab/base/hash.hpp>
#include <pmlab/indexes/detail/four_words.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace pmlab::indexes::detail {

using fingerprint = std::uint8_t;

// A hash of the key as a fraction of 2^32 times the number of fingerprints: below the point are 32 bits more.
[[nodiscard]] constexpr std::uint64_t hash_of(std::uint64_t key) noexcept {
  constexpr std::uint64_t odd = golden_ratio;
  constexpr std::uint64_t fingerprints = 255;
  return ((key ^ (key >> 32)) * odd >> 32) * fingerprints;
}

// Never 0, which marks a free slot.
[[nodiscard]] constexpr fingerprint fingerprint_of(std::uint64_t key) noexcept {
  return static_cast<fingerprint>((hash_of(key) >> 32) + 1);
}

inline constexpr std::size_t mark_words = 4;
inline constexpr std::size_t bytes_per_word = 8;

// One bit for each slot of those that have fingerprints in one array.
using mark_set = std::uint32_t;
inline constexpr std::size_t marked_slots = mark_words * bytes_per_word - 1;
inline constexpr mark_set all_marked = (mark_set{1} << marked_slots) - 1;

// 31 fingerprints, and a byte for other use.
using mark_array = std::array<std::atomic<std::uint64_t>, mark_words>;

[[nodiscard]] constexpr std::uint64_t mark(std::size_t place, std::uint8_t byte) noexcept {
  return std::uint64_t{byte} << (place % bytes_per_word * 8);
}

// A copy of a descriptor's marks: each word is read atomically, all of it only if the version was valid.
class marks {
 public:
  explicit marks(const mark_array& words) noexcept : words_(words) {}

  // Slots with this fingerprint.
  [[nodiscard]] mark_set equal_to(fingerprint wanted) const noexcept { return bytes_equal_to(wanted) & all_marked; }
  [[nodiscard]] mark_set free() const noexcept { return equal_to(0); }
  [[nodiscard]] mark_set used() const noexcept { return ~bytes_equal_to(0) & all_marked; }

 private:
  using half = four_words::half;

  [[nodiscard]] mark_set bytes_equal_to(std::uint8_t byte) const noexcept {
    return half_equal_to(words_.low(), byte) | half_equal_to(words_.high(), byte) << sizeof(half);
  }

  // Bit i: byte i of the half is `byte`.
  [[nodiscard]] static mark_set half_equal_to(const half& bytes, std::uint8_t byte) noexcept {
#if defined(__SSE2__)
    const __m128i wanted = _mm_set1_epi8(static_cast<char>(byte));
    return static_cast<mark_set>(_mm_movemask_epi8(_mm_cmpeq_epi8(reinterpret_cast<__m128i>(bytes), wanted)));
#else
    constexpr std::uint64_t ones = 0x0101010101010101U;
    constexpr std::uint64_t low_bits = 0x7f * ones;
    mark_set result = 0;
    for (std::size_t i = 0; i < sizeof(half) / bytes_per_word; ++i) {
      const std::uint64_t differences = bytes[i] ^ (byte * ones);
      // 0x80 in every byte that is 0, then these bits gathered into the upper byte.
      const std::uint64_t zeroes = ~(((differences & low_bits) + low_bits) | differences | low_bits);
      result |= static_cast<mark_set>(((zeroes >> 7) * 0x0102040810204080U) >> 56) << (bytes_per_word * i);
    }
    return result;
#endif
  }

  four_words words_;
};

}  // namespace pmlab::indexes::detail
