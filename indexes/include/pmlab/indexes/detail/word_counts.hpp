// How many words of a line are <= a bound: the step of a search in sorted keys.
//
// A search in DRAM is a few dozen instructions between two cache misses, and the processor begins the next search while
// this one waits, as far as its instruction window reaches. So the number of instructions counts, and there is one
// version for each kind of CPU. They are chosen for a whole descent (search_layer.hpp), since code for one kind is not
// inlined into code for another. Each has
//
//   count_up_to(words, bound)   for 4 or 8 words, aligned to the size of all; each is read whole, with acquire order.
//                               four_words.hpp has the reason for vector loads.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace pmlab::indexes::detail {

template <std::size_t Count>
using atomic_words = std::array<std::atomic<std::uint64_t>, Count>;

// A comparison and an addition of its carry for each word. No loop, with any compiler flags. (SSE2
// cannot compare words of 8 bytes, and is no faster.)
struct words_one_by_one {
  template <std::size_t Count>
  [[nodiscard, gnu::always_inline]] static std::size_t count_up_to(const atomic_words<Count>& words,
                                                                   std::uint64_t bound) noexcept {
    return count(words, bound, std::make_index_sequence<Count>());
  }

 private:
  template <std::size_t Count, std::size_t... I>
  [[nodiscard, gnu::always_inline]] static std::size_t count(const atomic_words<Count>& words, std::uint64_t bound,
                                                             std::index_sequence<I...> /*all*/) noexcept {
    std::size_t count = 0;
    ((count += static_cast<std::size_t>(words[I].load(std::memory_order_acquire) <= bound)), ...);
    return count;
  }
};

#if defined(__x86_64__)

// Builtins, since <immintrin.h> takes a third of a second to compile.

struct words_by_avx2 {
  [[nodiscard, gnu::target("avx2,popcnt")]] static inline std::size_t count_up_to(const atomic_words<4>& words,
                                                                                  std::uint64_t bound) noexcept {
    const lanes greater = flipped(words.data()) > static_cast<std::int64_t>(bound ^ top_bit);
    std::atomic_signal_fence(std::memory_order_acquire);
    return 4 - bits_in(__builtin_ia32_movmskpd256(reinterpret_cast<doubles>(greater)));
  }
  [[nodiscard, gnu::target("avx2,popcnt")]] static inline std::size_t count_up_to(const atomic_words<8>& words,
                                                                                  std::uint64_t bound) noexcept {
    const auto signed_bound = static_cast<std::int64_t>(bound ^ top_bit);
    const lanes low = flipped(words.data()) > signed_bound;
    const lanes high = flipped(words.data() + 4) > signed_bound;
    std::atomic_signal_fence(std::memory_order_acquire);
    // Each -1 of 8 bytes becomes two of 2 bytes, which are one of 4.
    const auto both = __builtin_ia32_packssdw256(reinterpret_cast<ints>(low), reinterpret_cast<ints>(high));
    return 8 - bits_in(__builtin_ia32_movmskps256(reinterpret_cast<floats>(both)));
  }

 private:
  using lanes [[gnu::vector_size(32), gnu::may_alias]] = std::int64_t;
  using ints [[gnu::vector_size(32)]] = int;
  using doubles [[gnu::vector_size(32)]] = double;
  using floats [[gnu::vector_size(32)]] = float;

  // The comparison is of signed words: with the top bit flipped they have the order of unsigned ones.
  static constexpr std::uint64_t top_bit = std::uint64_t{1} << 63;

  [[gnu::target("avx2,popcnt")]] static inline lanes flipped(const std::atomic<std::uint64_t>* words) noexcept {
    return *reinterpret_cast<const lanes*>(words) ^ static_cast<std::int64_t>(top_bit);
  }
  [[gnu::target("avx2,popcnt")]] static inline std::size_t bits_in(int mask) noexcept {
    return static_cast<std::size_t>(__builtin_popcount(static_cast<unsigned>(mask)));
  }
};

// Vectors of 32 bytes. Vectors of 64 would slow the clock of some CPUs down, and save two instructions.
struct words_by_avx512 {
  [[nodiscard, gnu::target("avx512vl,avx512dq,popcnt")]] static inline std::size_t count_up_to(
      const atomic_words<4>& words, std::uint64_t bound) noexcept {
    const unsigned mask = at_most(words.data(), bound);
    std::atomic_signal_fence(std::memory_order_acquire);
    return static_cast<std::size_t>(__builtin_popcount(mask));
  }
  [[nodiscard, gnu::target("avx512vl,avx512dq,popcnt")]] static inline std::size_t count_up_to(
      const atomic_words<8>& words, std::uint64_t bound) noexcept {
    const unsigned low = at_most(words.data(), bound);
    const unsigned high = at_most(words.data() + 4, bound);
    std::atomic_signal_fence(std::memory_order_acquire);
    return static_cast<std::size_t>(__builtin_popcount(low | high << 4));
  }

 private:
  using lanes [[gnu::vector_size(32), gnu::may_alias]] = long long;

  [[gnu::target("avx512vl,avx512dq,popcnt")]] static inline unsigned at_most(const std::atomic<std::uint64_t>* words,
                                                                             std::uint64_t bound) noexcept {
    constexpr int less_or_equal = 2;
    constexpr unsigned char all = 0xff;
    const auto limit = static_cast<long long>(bound);
    return __builtin_ia32_ucmpq256_mask(*reinterpret_cast<const lanes*>(words), lanes{limit, limit, limit, limit},
                                        less_or_equal, all);
  }
};

#endif

}  // namespace pmlab::indexes::detail
