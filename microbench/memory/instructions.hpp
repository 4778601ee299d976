// The measured instructions.
//
// Inline assembly, so that no compiler removes a load whose value is unused, merges two, or needs a flag for optional
// instructions. Each function is one access of `Bytes` bytes by instructions of at most Width bytes, unrolled; `Bytes`
// 0 is any multiple of 64, given when called.
#pragma once

#include "microbench/memory/case.hpp"
#include "microbench/memory/stored_word.hpp"

#include <cstddef>
#include <cstdint>

namespace pmlab::microbench::cpu {

template <load_kind Kind>
inline constexpr std::size_t width_of = Kind == load_kind::scalar ? 8
                                        : Kind == load_kind::avx2 ? 32
                                                                  : 64;

template <std::size_t Width>
[[gnu::always_inline]] inline void load_one(const std::byte* at) noexcept {
  static_assert(Width == 8 || Width == 16 || Width == 32 || Width == 64);
  if constexpr (Width == 8) {
    std::uint64_t word;
    asm volatile("movq %1, %0" : "=r"(word) : "m"(*at) : "memory");
  } else if constexpr (Width == 16) {
    asm volatile("vmovdqu %0, %%xmm0" : : "m"(*at) : "xmm0", "memory");
  } else if constexpr (Width == 32) {
    asm volatile("vmovdqu %0, %%ymm0" : : "m"(*at) : "xmm0", "memory");
  } else {
    asm volatile("vmovdqu64 %0, %%zmm0" : : "m"(*at) : "xmm0", "memory");
  }
}

enum class store_path : std::uint8_t { cached, around };
template <store_kind Kind>
inline constexpr store_path path_of = Kind == store_kind::ntstore ? store_path::around : store_path::cached;

// The vector is made of the word each time: a register cannot be kept from one asm to the next, and the broadcast is
// no match for a store.
template <std::size_t Width, store_path Path>
[[gnu::always_inline]] inline void store_one(std::byte* at) noexcept {
  static_assert(Width == 8 || Width == 16 || Width == 32 || Width == 64);
  constexpr bool around = Path == store_path::around;
  if constexpr (Width == 8 && around) {
    asm volatile("movnti %1, (%0)" : : "r"(at), "r"(stored_word) : "memory");
  } else if constexpr (Width == 8) {
    asm volatile("movq %1, (%0)" : : "r"(at), "r"(stored_word) : "memory");
  } else if constexpr (Width == 16 && around) {
    asm volatile("vmovq %1, %%xmm0; vpunpcklqdq %%xmm0, %%xmm0, %%xmm0; vmovntdq %%xmm0, (%0)"
                 :
                 : "r"(at), "r"(stored_word)
                 : "xmm0", "memory");
  } else if constexpr (Width == 16) {
    asm volatile("vmovq %1, %%xmm0; vpunpcklqdq %%xmm0, %%xmm0, %%xmm0; vmovdqu %%xmm0, (%0)"
                 :
                 : "r"(at), "r"(stored_word)
                 : "xmm0", "memory");
  } else if constexpr (Width == 32 && around) {
    asm volatile("vmovq %1, %%xmm0; vpbroadcastq %%xmm0, %%ymm0; vmovntdq %%ymm0, (%0)"
                 :
                 : "r"(at), "r"(stored_word)
                 : "xmm0", "memory");
  } else if constexpr (Width == 32) {
    asm volatile("vmovq %1, %%xmm0; vpbroadcastq %%xmm0, %%ymm0; vmovdqu %%ymm0, (%0)"
                 :
                 : "r"(at), "r"(stored_word)
                 : "xmm0", "memory");
  } else if constexpr (around) {
    asm volatile("vpbroadcastq %1, %%zmm0; vmovntdq %%zmm0, (%0)" : : "r"(at), "r"(stored_word) : "xmm0", "memory");
  } else {
    asm volatile("vpbroadcastq %1, %%zmm0; vmovdqu64 %%zmm0, (%0)" : : "r"(at), "r"(stored_word) : "xmm0", "memory");
  }
}

[[gnu::always_inline]] inline void clwb(const std::byte* at) noexcept {
  asm volatile("clwb (%0)" : : "r"(at) : "memory");
}
[[gnu::always_inline]] inline void clflushopt(const std::byte* at) noexcept {
  asm volatile("clflushopt (%0)" : : "r"(at) : "memory");
}
[[gnu::always_inline]] inline void clflush(const std::byte* at) noexcept {
  asm volatile("clflush (%0)" : : "r"(at) : "memory");
}
[[gnu::always_inline]] inline void movdir64b(std::byte* at, const std::byte* from) noexcept {
  asm volatile("movdir64b (%1), %0" : : "r"(at), "r"(from) : "memory");
}
[[gnu::always_inline]] inline void sfence() noexcept { asm volatile("sfence" ::: "memory"); }
[[gnu::always_inline]] inline void lfence() noexcept { asm volatile("lfence" ::: "memory"); }
[[gnu::always_inline]] inline void mfence() noexcept { asm volatile("mfence" ::: "memory"); }

inline constexpr std::size_t line = 64;

// An access of a constant size, by instructions of at most Width bytes: calls one<W>(offset) for each of them.
template <std::size_t Bytes, std::size_t Width, std::size_t Offset = 0, class One>
[[gnu::always_inline]] inline void for_each_part(One&& one) {
  constexpr std::size_t left = Bytes - Offset;
  if constexpr (left >= Width) {
    one.template operator()<Width>(Offset);
    for_each_part<Bytes, Width, Offset + Width>(one);
  } else if constexpr (left > 0) {
    for_each_part<Bytes, Width / 2, Offset>(one);
  }
}

template <std::size_t Bytes, load_kind Kind>
[[gnu::always_inline]] inline void load(const std::byte* at, std::size_t bytes) noexcept {
  constexpr std::size_t width = width_of<Kind>;
  if constexpr (Bytes != 0) {
    for_each_part<Bytes, width>([at]<std::size_t W>(std::size_t offset) { load_one<W>(at + offset); });
  } else {
#pragma GCC unroll 4
    for (const std::byte* const end = at + bytes; at != end; at += line)
      for_each_part<line, width>([at]<std::size_t W>(std::size_t offset) { load_one<W>(at + offset); });
  }
}

// The instruction that writes back, at every line of [at, at + bytes).
template <store_kind Kind>
[[gnu::always_inline]] inline void write_back(std::byte* at, std::size_t bytes) noexcept {
  if constexpr (Kind == store_kind::clwb || Kind == store_kind::clflushopt || Kind == store_kind::clflush) {
    const std::byte* const end = at + bytes;
    for (at -= reinterpret_cast<std::uintptr_t>(at) % line; at < end; at += line) {
      if constexpr (Kind == store_kind::clwb) clwb(at);
      if constexpr (Kind == store_kind::clflushopt) clflushopt(at);
      if constexpr (Kind == store_kind::clflush) clflush(at);
    }
  }
}

// movdir64b copies: from here.
struct alignas(64) stored_line {
  std::uint64_t words[8] = {stored_word, stored_word, stored_word, stored_word,
                            stored_word, stored_word, stored_word, stored_word};
};
inline constexpr stored_line line_to_store{};

template <std::size_t Bytes, store_kind Kind, load_kind Width>
[[gnu::always_inline]] inline void store(std::byte* at, std::size_t bytes) noexcept {
  constexpr std::size_t width = width_of<Width>;
  const auto part = [&at]<std::size_t W>(std::size_t offset) { store_one<W, path_of<Kind>>(at + offset); };
  if constexpr (Kind == store_kind::movdir64b) {
    const auto* const from = reinterpret_cast<const std::byte*>(&line_to_store);
    for (std::byte* const end = at + (Bytes != 0 ? Bytes : bytes); at != end; at += line) movdir64b(at, from);
  } else if constexpr (Bytes != 0) {
    for_each_part<Bytes, width>(part);
    write_back<Kind>(at, Bytes);
  } else {
    // Line after line, each written back before the next is stored to, as the device should get them.
    for (std::byte* const end = at + bytes; at != end; at += line) {
      for_each_part<line, width>(part);
      write_back<Kind>(at, line);
    }
  }
}

// After vector instructions of a width that the code around it does not know of.
template <load_kind Kind>
[[gnu::always_inline]] inline void leave_vectors() noexcept {
  if constexpr (Kind != load_kind::scalar) asm volatile("vzeroupper" ::: "memory");
}

}  // namespace pmlab::microbench::cpu
