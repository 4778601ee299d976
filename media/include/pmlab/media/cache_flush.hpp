// The CPU's instructions for writing cache lines back, chosen once at run time.
#pragma once

#include <pmlab/media/lines.hpp>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <cpuid.h>

namespace pmlab::media {

// Instructions that write a cache line back: the first keeps the line in the cache, the others drop it.
enum class flush_instruction : std::uint8_t { clwb, clflushopt, clflush };

// Its name as an assembler has it.
[[nodiscard]] constexpr std::string_view to_string(flush_instruction i) noexcept {
  switch (i) {
    case flush_instruction::clwb: return "clwb";
    case flush_instruction::clflushopt: return "clflushopt";
    case flush_instruction::clflush: return "clflush";
  }
  return "?";
}

// The cheapest instruction that this CPU has: clwb keeps the line in the cache, clflushopt and clflush evict it, and
// clflush also waits for each line.
[[nodiscard]] inline flush_instruction best_flush_instruction() noexcept {
  constexpr unsigned clwb_bit = 1U << 24;
  constexpr unsigned clflushopt_bit = 1U << 23;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return flush_instruction::clflush;
  if ((ebx & clwb_bit) != 0) return flush_instruction::clwb;
  if ((ebx & clflushopt_bit) != 0) return flush_instruction::clflushopt;
  return flush_instruction::clflush;
}

// Writes back every line of [start, start + bytes). Inline assembly rather than intrinsics, so that a program built
// without -mclwb still uses clwb where the machine has it.
inline void flush_lines(flush_instruction instruction, const void* start, std::size_t bytes) noexcept {
  for_each_line(start, bytes, [instruction](std::uintptr_t line) {
    auto& byte = *reinterpret_cast<volatile char*>(line);
    switch (instruction) {
      case flush_instruction::clwb: asm volatile("clwb %0" : "+m"(byte)::"memory"); break;
      case flush_instruction::clflushopt: asm volatile("clflushopt %0" : "+m"(byte)::"memory"); break;
      case flush_instruction::clflush: asm volatile("clflush %0" : "+m"(byte)::"memory"); break;
    }
  });
}

// Waits until the write-backs that this thread started have reached the memory controller's persistent domain.
inline void store_fence() noexcept { asm volatile("sfence" ::: "memory"); }

}  // namespace pmlab::media
