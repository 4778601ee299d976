// The four keys of a line, read and compared at once.
#pragma once

#include <pmlab/indexes/detail/entry_line.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace pmlab::indexes::detail {

// A copy of four atomic words, each of them whole, read with acquire order. (Not one atomic copy of all four: whoever
// needs that validates a version afterwards.)
class four_words {
 public:
  // The vector instruction does not exist in the C++ memory model, where it would be a data race. On x86 an aligned
  // vector load reads each 8-byte word whole and has acquire order; the signal fence keeps the compiler to that.
  // Instruments that watch atomics (ThreadSanitizer, the simulated machine) get four atomic loads instead.
  explicit four_words(const std::array<std::atomic<std::uint64_t>, entries_per_line>& words) noexcept {
#if defined(__AVX2__) && !defined(__SANITIZE_THREAD__) && !defined(PMLAB_ATOMIC_LOADS_ONLY)
    words_ = *reinterpret_cast<const lanes*>(words.data());
    std::atomic_signal_fence(std::memory_order_acquire);
#else
    for (std::size_t i = 0; i < entries_per_line; ++i) words_[i] = words[i].load(std::memory_order_acquire);
#endif
  }

  [[nodiscard]] std::uint64_t operator[](std::size_t i) const noexcept { return words_[i]; }

  // Bit i is set if word i is equal to `wanted` in every bit of `mask`.
  [[nodiscard]] unsigned equal_to(std::uint64_t wanted, std::uint64_t mask) const noexcept {
    return bits_of(((words_ ^ wanted) & mask) == 0);
  }

  // How many words are <= `bound`.
  [[nodiscard]] std::size_t count_up_to(std::uint64_t bound) const noexcept {
#if defined(__AVX512VL__)
    const __m256i bounds = _mm256_set1_epi64x(static_cast<long long>(bound));
    const __mmask8 bits = _mm256_cmple_epu64_mask(reinterpret_cast<__m256i>(words_), bounds);
    return static_cast<std::size_t>(std::popcount(static_cast<unsigned>(bits)));
#else
    return static_cast<std::size_t>(std::popcount(bits_of(words_ <= bound)));
#endif
  }

 private:
  using lanes [[gnu::vector_size(32), gnu::may_alias]] = std::uint64_t;
  using truths [[gnu::vector_size(32)]] = std::int64_t;

  // A comparison gives 0 or -1 in each lane; bit i is lane i.
  static unsigned bits_of(const truths& t) noexcept {
#if defined(__AVX2__)
    return static_cast<unsigned>(_mm256_movemask_pd(_mm256_castsi256_pd(reinterpret_cast<__m256i>(t))));
#else
    unsigned bits = 0;
    for (unsigned i = 0; i < entries_per_line; ++i) bits |= static_cast<unsigned>(t[i] != 0) << i;
    return bits;
#endif
  }

  lanes words_;
};

}  // namespace pmlab::indexes::detail
