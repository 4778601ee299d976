// A line of eight words, compared at once.
#pragma once

#include <pmlab/media/lines.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace pmlab::indexes::detail {

inline constexpr std::size_t words_per_line = media::cache_line_bytes / sizeof(std::uint64_t);

// Aligned to a line wherever it stands.
using eight_atomic_words = std::array<std::atomic<std::uint64_t>, words_per_line>;

// How many words are <= `bound`; each is read whole, with acquire order. See four_words.hpp for why that holds of the
// vector load, and who gets atomic loads.
[[nodiscard]] inline std::size_t count_up_to(const eight_atomic_words& words, std::uint64_t bound) noexcept {
#if defined(__AVX512F__) && !defined(__SANITIZE_THREAD__) && !defined(PMLAB_ATOMIC_LOADS_ONLY)
  const __m512i line = _mm512_load_si512(words.data());
  std::atomic_signal_fence(std::memory_order_acquire);
  const __mmask8 truths = _mm512_cmple_epu64_mask(line, _mm512_set1_epi64(static_cast<long long>(bound)));
  return static_cast<std::size_t>(std::popcount(static_cast<unsigned>(truths)));
#else
  std::size_t count = 0;
  for (const std::atomic<std::uint64_t>& word : words)
    count += static_cast<std::size_t>(word.load(std::memory_order_acquire) <= bound);
  return count;
#endif
}

}  // namespace pmlab::indexes::detail
