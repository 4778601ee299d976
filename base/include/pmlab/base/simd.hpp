// The vector instructions that pmlab's headers use on the CPU that the program runs on.
#pragma once

#include <pmlab/base/platform.hpp>

#include <cstdint>
#include <string_view>

namespace pmlab {

// Sets of vector instructions, from the smallest. The compiler's flags do not choose one: code of pmlab's headers uses
// SSE2, which every x86-64 has, and a loop that is faster with more is compiled for each set and chosen at run time. So
// one binary runs on every x86-64, at full speed.
enum class simd : std::uint8_t {
  none,    // another architecture, or a build for an instrument that watches single loads
  sse2,    // every x86-64
  avx2,    // AVX2 and POPCNT
  avx512,  // AVX-512 VL and DQ, of which vectors of 32 bytes are used
};

// The enumerator's name, as results have it.
[[nodiscard]] constexpr std::string_view to_string(simd set) noexcept {
  switch (set) {
    case simd::none: return "none";
    case simd::sse2: return "sse2";
    case simd::avx2: return "avx2";
    case simd::avx512: return "avx512";
  }
  return "?";
}

// False: words that threads share are read one by one, by atomic loads.
#if defined(__SSE2__)
inline constexpr bool loads_vectors = !platform::watches_words;
#else
inline constexpr bool loads_vectors = false;
#endif

// The largest set that this CPU has and the operating system saves. Costs a load and a test for each missing set.
// Thread-safe.
[[nodiscard]] inline simd simd_of_this_cpu() noexcept {
#if defined(__x86_64__)
  if constexpr (loads_vectors) {
    if (__builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) return simd::avx512;
    if (__builtin_cpu_supports("avx2")) return simd::avx2;
    return simd::sse2;
  }
#endif
  return simd::none;
}

}  // namespace pmlab
