// Four words of a line, such as the keys of its entries, read and compared at once. One path for every x86-64: it uses
// only SSE2, and is as fast as vectors of 32 bytes.
#pragma once

#include <pmlab/base/simd.hpp>
#include <pmlab/indexes/detail/entry_line.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace pmlab::indexes::detail {

// A copy of four atomic words, each read atomically with acquire order. (Not one atomic copy of all four: a reader that
// needs that validates a version afterwards.)
class four_words {
 public:
  // Two of the words.
  using half [[gnu::vector_size(16), gnu::may_alias]] = std::uint64_t;

  // The vector instruction does not exist in the C++ memory model, where it would be a data race. On x86 an aligned
  // vector load reads each 8-byte word atomically and has acquire order; the signal fence keeps the compiler from
  // reordering it. Instruments that observe atomics (ThreadSanitizer, the simulated machine) get four atomic loads
  // instead.
  explicit four_words(const std::array<std::atomic<std::uint64_t>, entries_per_line>& words) noexcept {
    if constexpr (loads_vectors) {
      const auto* const halves = reinterpret_cast<const half*>(words.data());
      low_ = halves[0];
      high_ = halves[1];
      std::atomic_signal_fence(std::memory_order_acquire);
    } else {
      std::array<std::uint64_t, entries_per_line> loaded{};
      for (std::size_t i = 0; i < entries_per_line; ++i) loaded[i] = words[i].load(std::memory_order_acquire);
      low_ = half{loaded[0], loaded[1]};
      high_ = half{loaded[2], loaded[3]};
    }
  }

  // By constant positions: one that is not known when compiling would keep the vectors in memory.
  [[nodiscard]] std::uint64_t operator[](std::size_t i) const noexcept {
    switch (i) {
      case 0: return low_[0];
      case 1: return low_[1];
      case 2: return high_[0];
      default: return high_[1];
    }
  }

  // Bit i is set if word i is equal to `wanted` in every bit of `mask`.
  [[nodiscard]] unsigned equal_to(std::uint64_t wanted, std::uint64_t mask) const noexcept {
    const half low = (low_ ^ wanted) & mask;
    const half high = (high_ ^ wanted) & mask;
#if defined(__SSE2__)
    // SSE2 compares words of 4 bytes. The lower halves of all four differences, and the upper ones: a word of 8 bytes
    // is equal if both are 0.
    const auto lows = reinterpret_cast<__m128>(low);
    const auto highs = reinterpret_cast<__m128>(high);
    const auto lower = reinterpret_cast<__m128i>(_mm_shuffle_ps(lows, highs, _MM_SHUFFLE(2, 0, 2, 0)));
    const auto upper = reinterpret_cast<__m128i>(_mm_shuffle_ps(lows, highs, _MM_SHUFFLE(3, 1, 3, 1)));
    const __m128i equal = _mm_cmpeq_epi32(_mm_or_si128(lower, upper), _mm_setzero_si128());
    return static_cast<unsigned>(_mm_movemask_ps(reinterpret_cast<__m128>(equal)));
#else
    return static_cast<unsigned>(low[0] == 0) | static_cast<unsigned>(low[1] == 0) << 1 |
           static_cast<unsigned>(high[0] == 0) << 2 | static_cast<unsigned>(high[1] == 0) << 3;
#endif
  }

  // Words 0 and 1, and words 2 and 3.
  [[nodiscard]] const half& low() const noexcept { return low_; }
  [[nodiscard]] const half& high() const noexcept { return high_; }

 private:
  half low_;
  half high_;
};

}  // namespace pmlab::indexes::detail
