// Every form of store that we know of. Built as simulated code.
#include "checker/tests/simulator/store_forms/form.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>

#include <immintrin.h>

namespace forms {
namespace {

using enum verdict;

template <class T>
T& at(char* target, std::size_t offset = 0) {
  return *reinterpret_cast<T*>(target + offset);
}
template <class T>
const T& source() {
  return *reinterpret_cast<const T*>(forms_source);
}
std::size_t some_bytes() { return static_cast<std::size_t>(static_cast<unsigned char>(forms_source[0])) % 64 + 17; }

template <std::size_t Bytes>
struct block {
  std::array<char, Bytes> bytes;
};
struct pair {
  std::uint64_t key;
  std::uint64_t value;
};
struct bits {
  unsigned low : 5;
  unsigned middle : 9;
};
struct line {
  std::uint64_t header = 7;
  std::array<pair, 3> entries{};
};
struct alignas(16) two_words {
  std::uint64_t low;
  std::uint64_t high;
};
struct three_words {
  std::uint64_t words[3];
};
__extension__ using int128 = unsigned __int128;
using vector16 [[gnu::vector_size(16), gnu::may_alias]] = std::uint64_t;
using vector32 [[gnu::vector_size(32), gnu::may_alias]] = std::uint64_t;

template <class T>
void compare_and_swap(char* t) {
  T expected = at<T>(t);
  reinterpret_cast<std::atomic<T>*>(t)->compare_exchange_strong(expected, source<T>());
}
template <class T>
void atomic_store(char* t) {
  reinterpret_cast<std::atomic<T>*>(t)->store(source<T>());
}
template <class T>
void exchange(char* t) {
  reinterpret_cast<std::atomic<T>*>(t)->exchange(source<T>());
}
template <class T>
void fetch_add(char* t) {
  reinterpret_cast<std::atomic<T>*>(t)->fetch_add(3);
}

[[gnu::target("avx")]] void avx_store(char* t) {
  _mm256_store_si256(&at<__m256i>(t), _mm256_set1_epi8(forms_source[0]));
}
[[gnu::target("avx")]] void avx_unaligned(char* t) {
  _mm256_storeu_si256(&at<__m256i_u>(t, 3), _mm256_set1_epi8(forms_source[0]));
}
[[gnu::target("avx")]] void avx_masked(char* t) {
  _mm256_maskstore_pd(&at<double>(t), _mm256_set_epi64x(-1, 0, -1, 0), _mm256_set1_pd(3.5));
}
[[gnu::target("avx2")]] void avx2_masked(char* t) {
  _mm256_maskstore_epi32(&at<int>(t), _mm256_set_epi32(-1, 0, -1, 0, -1, 0, 0, 0), _mm256_set1_epi32(77));
}
[[gnu::target("avx")]] void avx_stream(char* t) {
  _mm256_stream_si256(&at<__m256i>(t), _mm256_set1_epi8(forms_source[0]));
}
[[gnu::target("avx512f")]] void avx512_store(char* t) { _mm512_storeu_si512(t, _mm512_set1_epi32(77)); }
[[gnu::target("avx512f")]] void avx512_masked(char* t) {
  _mm512_mask_storeu_epi32(t, static_cast<__mmask16>(0x1221), _mm512_set1_epi32(77));
}
[[gnu::target("avx512f")]] void avx512_stream(char* t) { _mm512_stream_si512(&at<__m512i>(t), _mm512_set1_epi32(77)); }
[[gnu::target("avx512f")]] void avx512_compress(char* t) {
  _mm512_mask_compressstoreu_epi32(t, static_cast<__mmask16>(0x1221), _mm512_set1_epi32(77));
}
[[gnu::target("avx512f")]] void avx512_scatter(char* t) {
  _mm512_i32scatter_epi32(t, _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                          _mm512_set1_epi32(77), 4);
}
[[gnu::target("movdir64b")]] void direct64(char* t) { _movdir64b(t, forms_source); }

constexpr store_form table[] = {
    // ---- plain ----
    {"1 byte", seen, seen, [](char* t) { *t = forms_source[0]; }},
    {"2 bytes", seen, seen, [](char* t) { at<std::uint16_t>(t) = source<std::uint16_t>(); }},
    {"4 bytes", seen, seen, [](char* t) { at<std::uint32_t>(t) = source<std::uint32_t>(); }},
    {"8 bytes", seen, seen, [](char* t) { at<std::uint64_t>(t) = source<std::uint64_t>(); }},
    {"8 bytes, a constant", seen, seen, [](char* t) { at<std::uint64_t>(t) = 5; }},
    {"8 bytes, unaligned", seen, seen, [](char* t) { std::memcpy(t + 3, forms_source, 8); }},
    {"`+=` of 8 bytes", seen, seen, [](char* t) { at<std::uint64_t>(t) += 5; }},
    {"`double`", seen, seen, [](char* t) { at<double>(t) = 1.5; }},
    {"`long double`", seen, seen, [](char* t) { at<long double>(t) = 1.5L; }},
    {"`__int128`", seen, seen,
     [](char* t) { at<int128>(t) = source<int128>(); }},
    {"volatile", seen, seen, [](char* t) { at<volatile std::uint64_t>(t) = 5; }},
    {"bit field", seen, seen, [](char* t) { at<bits>(t).middle = 77; }},
    {"two neighbours, which may be merged", seen, seen,
     [](char* t) {
       at<std::uint32_t>(t) = 1;
       at<std::uint32_t>(t, 4) = 2;
     }},

    // ---- structures ----
    {"structure of 4 bytes, copied", seen, seen, [](char* t) { at<block<4>>(t) = source<block<4>>(); }},
    {"structure of 8 bytes, copied", seen, seen, [](char* t) { at<block<8>>(t) = source<block<8>>(); }},
    {"structure of 12 bytes, copied", seen, seen, [](char* t) { at<block<12>>(t) = source<block<12>>(); }},
    {"structure of 16 bytes, copied", seen, seen, [](char* t) { at<pair>(t) = source<pair>(); }},
    {"structure of 16 bytes, from two values", seen, seen, [](char* t) { at<pair>(t) = pair{1, 2}; }},
    {"structure of 24 bytes, copied", seen, seen, [](char* t) { at<block<24>>(t) = source<block<24>>(); }},
    {"structure copied onto its neighbour", seen, seen, [](char* t) { at<block<32>>(t, 32) = at<block<32>>(t); }},
    {"structure of 64 bytes, copied", seen, seen, [](char* t) { at<block<64>>(t) = source<block<64>>(); }},
    {"structure of 200 bytes, copied", seen, seen, [](char* t) { at<block<200>>(t) = source<block<200>>(); }},
    {"structure of 64 bytes, cleared by `= {}`", seen, seen, [](char* t) { at<block<64>>(t) = {}; }},
    {"structure of 200 bytes, cleared by `= {}`", seen, seen, [](char* t) { at<block<200>>(t) = {}; }},
    {"placement new with member initialisers", seen, seen, [](char* t) { new (t) line; }},
    {"placement new, value-initialised", seen, seen, [](char* t) { new (t) block<64>(); }},
    {"placement new of an array, value-initialised", seen, seen, [](char* t) { new (t) std::uint64_t[16](); }},
    {"swap of two structures", seen, seen, [](char* t) { std::swap(at<pair>(t), at<pair>(t, 64)); }},

    // ---- atomic ----
    {"`std::atomic` 1 byte: store", seen_with_value, seen_with_value, atomic_store<std::uint8_t>},
    {"`std::atomic` 2 bytes: store", seen_with_value, seen_with_value, atomic_store<std::uint16_t>},
    {"`std::atomic` 4 bytes: store", seen_with_value, seen_with_value, atomic_store<std::uint32_t>},
    {"`std::atomic` 8 bytes: store", seen_with_value, seen_with_value, atomic_store<std::uint64_t>},
    {"`std::atomic` 8 bytes: store, relaxed", seen_with_value, seen_with_value,
     [](char* t) { at<std::atomic<std::uint64_t>>(t).store(5, std::memory_order_relaxed); }},
    {"`std::atomic` 16 bytes: store", seen_with_value, seen, atomic_store<two_words>},
    {"`std::atomic` 24 bytes: store", seen, seen, atomic_store<three_words>},
    {"`std::atomic` 1 byte: exchange", seen_with_value, seen_with_value, exchange<std::uint8_t>},
    {"`std::atomic` 8 bytes: exchange", seen_with_value, seen_with_value, exchange<std::uint64_t>},
    {"`std::atomic` 16 bytes: exchange", seen_with_value, seen, exchange<two_words>},
    {"`std::atomic` 1 byte: fetch_add", seen_with_value, seen_with_value, fetch_add<std::uint8_t>},
    {"`std::atomic` 4 bytes: fetch_add", seen_with_value, seen_with_value, fetch_add<std::uint32_t>},
    {"`std::atomic` 8 bytes: fetch_add", seen_with_value, seen_with_value, fetch_add<std::uint64_t>},
    {"`std::atomic` 1 byte: compare_exchange", seen_with_value, seen_with_value, compare_and_swap<std::uint8_t>},
    {"`std::atomic` 2 bytes: compare_exchange", seen_with_value, seen_with_value, compare_and_swap<std::uint16_t>},
    {"`std::atomic` 4 bytes: compare_exchange", seen_with_value, seen_with_value, compare_and_swap<std::uint32_t>},
    {"`std::atomic` 8 bytes: compare_exchange", seen_with_value, seen_with_value, compare_and_swap<std::uint64_t>},
    {"`std::atomic` 16 bytes: compare_exchange", seen_with_value, seen, compare_and_swap<two_words>},
    {"`std::atomic` 24 bytes: exchange", seen, seen, exchange<three_words>},
    {"`std::atomic` 24 bytes: compare_exchange", seen, seen, compare_and_swap<three_words>},
    {"`__atomic_store_n` 8 bytes", seen_with_value, seen_with_value,
     [](char* t) { __atomic_store_n(&at<std::uint64_t>(t), 5, __ATOMIC_RELEASE); }},
    {"`__atomic_fetch_or` 8 bytes", seen_with_value, seen_with_value,
     [](char* t) { __atomic_fetch_or(&at<std::uint64_t>(t), 5, __ATOMIC_RELEASE); }},
    {"`__sync_bool_compare_and_swap` 8 bytes", seen_with_value, seen_with_value,
     [](char* t) { (void)__sync_bool_compare_and_swap(&at<std::uint64_t>(t), at<std::uint64_t>(t), 5U); }},
    {"`__sync_fetch_and_add` 4 bytes", seen_with_value, seen_with_value,
     [](char* t) { __sync_fetch_and_add(&at<std::uint32_t>(t), 5U); }},
    {"`__sync_lock_test_and_set`, `__sync_lock_release`", seen_with_value, seen_with_value,
     [](char* t) {
       (void)__sync_lock_test_and_set(&at<std::uint32_t>(t, 8), 5U);
       __sync_lock_release(&at<std::uint32_t>(t));
     }},

    // ---- memory functions ----
    {"`memcpy` of 8 bytes", seen, seen, [](char* t) { std::memcpy(t, forms_source, 8); }},
    {"`memcpy` of 48 bytes", seen, seen, [](char* t) { std::memcpy(t, forms_source, 48); }},
    {"`memcpy` of a variable size", seen, seen, [](char* t) { std::memcpy(t, forms_source, some_bytes()); }},
    {"`__builtin_memcpy` of 48 bytes", seen, seen, [](char* t) { __builtin_memcpy(t, forms_source, 48); }},
    {"`memmove` of 48 bytes", seen, seen, [](char* t) { std::memmove(t, t + 8, 48); }},
    {"`memset` of 48 bytes", seen, seen, [](char* t) { std::memset(t, 0, 48); }},
    {"`memset` of a variable size", seen, seen, [](char* t) { std::memset(t, 0, some_bytes()); }},
    {"`__builtin_memset` of 48 bytes", seen, seen, [](char* t) { __builtin_memset(t, 0, 48); }},
    {"`strcpy`", seen, seen, [](char* t) { std::strcpy(t, "twenty characters..."); }},
    {"`strncpy`", seen, seen, [](char* t) { std::strncpy(t, "twenty characters...", 40); }},
    {"`std::copy` of 5 words", seen, seen,
     [](char* t) { std::copy_n(&source<std::uint64_t>(), 5, &at<std::uint64_t>(t)); }},
    {"`std::copy` of structures", seen, seen, [](char* t) { std::copy_n(&source<pair>(), 5, &at<pair>(t)); }},
    {"`std::move_backward`, as in a sorted array", seen, seen,
     [](char* t) { std::move_backward(&at<pair>(t), &at<pair>(t) + 5, &at<pair>(t) + 6); }},
    {"`std::fill` of bytes", seen, seen, [](char* t) { std::fill_n(t, 48, '\0'); }},
    {"`std::fill` of words", seen, seen, [](char* t) { std::fill_n(&at<std::uint64_t>(t), 9, 5U); }},
    {"assignment to `std::array`", seen, seen,
     [](char* t) { at<std::array<std::uint32_t, 12>>(t) = source<std::array<std::uint32_t, 12>>(); }},
    {"inside of the C library: `snprintf`", not_seen, not_seen,
     [](char* t) { std::snprintf(t, 40, "%d", forms_source[3]); }},

    // ---- loops ----
    {"loop over bytes", seen, seen,
     [](char* t) {
       for (std::size_t i = 0; i < 64; ++i) t[i] = static_cast<char>(forms_source[i] + 1);
     }},
    {"loop over words, to a constant", seen, seen,
     [](char* t) {
       for (std::size_t i = 0; i < 16; ++i) at<std::uint64_t>(t, 8 * i) = 0;
     }},
    {"loop that copies words", seen, seen,
     [](char* t) {
       for (std::size_t i = 0; i < 16; ++i) at<std::uint64_t>(t, 8 * i) = at<const std::uint64_t>(forms_source, 8 * i);
     }},
    {"four stores in a row, which may become a vector", seen, seen,
     [](char* t) {
       const auto* from = &source<std::uint32_t>();
       for (std::size_t i = 0; i < 4; ++i) at<std::uint32_t>(t, 4 * i) = from[i] + 1;
     }},

    // ---- vectors ----
    {"vector type of 16 bytes", seen, seen, [](char* t) { at<vector16>(t) = source<vector16>(); }},
    {"vector type of 32 bytes, without AVX", seen, seen, [](char* t) { at<vector32>(t) = source<vector32>() + 1; }},
    {"`_mm_store_si128`", seen, seen,
     [](char* t) { _mm_store_si128(&at<__m128i>(t), _mm_set1_epi8(forms_source[0])); }},
    {"`_mm_storeu_si128`", seen, seen,
     [](char* t) { _mm_storeu_si128(&at<__m128i_u>(t, 3), _mm_set1_epi8(forms_source[0])); }},
    {"`_mm_storel_epi64`", seen, seen,
     [](char* t) { _mm_storel_epi64(&at<__m128i_u>(t), _mm_set1_epi8(forms_source[0])); }},
    {"`_mm256_store_si256`", seen, seen, avx_store, "avx"},
    {"`_mm256_storeu_si256`", seen, seen, avx_unaligned, "avx"},
    {"`_mm512_storeu_si512`", seen, seen, avx512_store, "avx512f"},
    {"`_mm256_maskstore_pd`", seen, seen, avx_masked, "avx"},
    {"`_mm256_maskstore_epi32`", seen, seen, avx2_masked, "avx2"},
    {"`_mm512_mask_storeu_epi32`", seen, seen, avx512_masked, "avx512f"},
    {"`_mm512_mask_compressstoreu_epi32`", seen, seen, avx512_compress, "avx512f"},
    {"`_mm512_i32scatter_epi32`", not_seen, not_seen, avx512_scatter, "avx512f"},
    {"`_mm_maskmoveu_si128`", seen, seen,
     [](char* t) { _mm_maskmoveu_si128(_mm_set1_epi8(77), _mm_set1_epi16(-256), t); }},

    // ---- non-temporal ----
    {"`_mm_stream_si32`", seen, seen, [](char* t) { _mm_stream_si32(&at<int>(t), 5); }},
    {"`_mm_stream_si64`", seen, seen, [](char* t) { _mm_stream_si64(&at<long long>(t), 5); }},
    {"`_mm_stream_si128`", seen, seen, [](char* t) { _mm_stream_si128(&at<__m128i>(t), _mm_set1_epi8(5)); }},
    {"`_mm_stream_pd`", seen, seen, [](char* t) { _mm_stream_pd(&at<double>(t), _mm_set1_pd(5)); }},
    {"`_mm256_stream_si256`", seen, seen, avx_stream, "avx"},
    {"`_mm512_stream_si512`", seen, seen, avx512_stream, "avx512f"},
    {"`_movdir64b`", seen, seen, direct64, "movdir64b"},
    {"asm `movnti`", seen, seen,
     [](char* t) { asm volatile("movnti %1, %0" : "=m"(at<std::uint64_t>(t)) : "r"(std::uint64_t{5})); }},

    // ---- inline asm ----
    {"asm `movq` from a register", seen, seen,
     [](char* t) { asm volatile("movq %1, %0" : "=m"(at<std::uint64_t>(t)) : "r"(std::uint64_t{5})); }},
    {"asm `movl` of a constant, with displacement", seen, seen,
     [](char* t) { asm volatile("movl $5, 8(%0)" : : "r"(t) : "memory"); }},
    {"asm `addl`", seen, seen, [](char* t) { asm volatile("addl $5, %0" : "+m"(at<std::uint32_t>(t)) : : "cc"); }},
    {"asm `movdqu`", seen, seen,
     [](char* t) { asm volatile("movdqu %1, (%0)" : : "r"(t), "x"(_mm_set1_epi8(5)) : "memory"); }},
    {"asm `lock cmpxchg`", seen, seen,
     [](char* t) {
       std::uint64_t expected = at<std::uint64_t>(t);
       asm volatile("lock cmpxchgq %2, %0"
                    : "+m"(at<std::uint64_t>(t)), "+a"(expected)
                    : "r"(std::uint64_t{5})
                    : "cc");
     }},
    {"asm `lock; cmpxchg` behind a label", seen, seen,
     [](char* t) {
       std::uint32_t expected = at<std::uint32_t>(t);
       asm volatile("1: lock; cmpxchgl %2, %0; jne 1b"
                    : "+m"(at<std::uint32_t>(t)), "+a"(expected)
                    : "r"(5)
                    : "cc");
     }},
    {"asm `lock cmpxchg16b`", seen, seen,
     [](char* t) {
       std::uint64_t low = at<std::uint64_t>(t);
       std::uint64_t high = at<std::uint64_t>(t, 8);
       asm volatile("lock\n\tcmpxchg16b %0"
                    : "+m"(at<two_words>(t)), "+a"(low), "+d"(high)
                    : "b"(std::uint64_t{5}), "c"(std::uint64_t{6})
                    : "cc");
     }},
    {"asm `lock xadd`", seen, seen,
     [](char* t) {
       std::uint32_t value = 5;
       asm volatile("lock xaddl %1, %0" : "+m"(at<std::uint32_t>(t)), "+r"(value) : : "cc");
     }},
    {"asm `xchg`, memory last", seen, seen,
     [](char* t) {
       std::uint64_t value = 5;
       asm volatile("xchgq %1, %0" : "+m"(at<std::uint64_t>(t)), "+r"(value));
     }},
    {"asm `xchg`, memory first", seen, seen,
     [](char* t) {
       std::uint8_t value = 5;
       asm volatile("xchg %0, %1" : "+m"(at<std::uint8_t>(t)), "+q"(value));
     }},
    {"asm `rep stosb`", seen, seen,
     [](char* t) {
       std::size_t count = 40;
       asm volatile("rep stosb" : "+D"(t), "+c"(count) : "a"(5) : "memory");
     }},
    {"asm `rep movsq`", seen, seen,
     [](char* t) {
       std::size_t count = 5;
       const char* from = forms_source;
       asm volatile("rep; movsq" : "+D"(t), "+S"(from), "+c"(count) : : "memory");
     }},
    {"asm `fstpl`", seen, seen, [](char* t) { asm volatile("fldpi; fstpl (%0)" : : "r"(t) : "memory"); }},
};

}  // namespace

std::span<const store_form> store_forms() { return table; }

}  // namespace forms
