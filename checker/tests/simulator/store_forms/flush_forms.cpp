// Every form of write-back and fence that published code uses. Built as simulated code.
#include "checker/tests/simulator/store_forms/form.hpp"

#include <atomic>
#include <cstdint>

#include <immintrin.h>

namespace forms {
namespace {

using what = event::what;

[[gnu::target("clwb")]] void clwb_intrinsic(char* t) { _mm_clwb(t + 8); }
[[gnu::target("clflushopt")]] void clflushopt_intrinsic(char* t) { _mm_clflushopt(t + 8); }

// One whole persist, as it is usually written: the value must be stored before the flush.
[[gnu::target("clwb")]] void persist(char* t) {
  *reinterpret_cast<std::uint64_t*>(t) = 5;
  _mm_sfence();
  _mm_clwb(t);
  _mm_sfence();
}

[[gnu::target("clwb")]] void lines_of_a_range(char* t) {
  for (char* p = t; p < t + 192; p += 64) _mm_clwb(p);
}

constexpr flush_form table[] = {
    {"`_mm_clwb`", clwb_intrinsic, {{what::clwb, 8}}},
    {"`_mm_clflushopt`", clflushopt_intrinsic, {{what::clflushopt, 8}}},
    {"`_mm_clflush`", [](char* t) { _mm_clflush(t + 8); }, {{what::clflush, 8}}},
    {"`_mm_sfence`", [](char*) { _mm_sfence(); }, {{what::sfence}}},
    {"`_mm_mfence`", [](char*) { _mm_mfence(); }, {{what::mfence}}},
    {"store, fence, flush, fence", persist, {{what::sfence}, {what::clwb, 0}, {what::sfence}}, 3},
    {"a loop over lines", lines_of_a_range, {{what::clwb, 0}, {what::clwb, 64}, {what::clwb, 128}}, 3},
    {"asm `clwb`",
     [](char* t) { asm volatile("clwb %0"
                                : "+m"(*static_cast<volatile char*>(t + 72))); },
     {{what::clwb, 72}}},
    {"asm `clwb (%0)`", [](char* t) { asm volatile("clwb (%0)"
                                                   :
                                                   : "r"(t)
                                                   : "memory"); }, {{what::clwb, 0}}},
    {"asm `clflushopt`",
     [](char* t) { asm volatile("clflushopt %0"
                                : "+m"(*static_cast<volatile char*>(t + 72))); },
     {{what::clflushopt, 72}}},
    {"asm `clflush`",
     [](char* t) { asm volatile("clflush %0"
                                : "+m"(*static_cast<volatile char*>(t))); },
     {{what::clflush, 0}}},
    {"asm `.byte 0x66; clflush` (clflushopt)",
     [](char* t) { asm volatile(".byte 0x66; clflush %0"
                                : "+m"(*static_cast<volatile char*>(t + 64))); },
     {{what::clflushopt, 64}}},
    {"asm `.byte 0x66; xsaveopt` (clwb)",
     [](char* t) { asm volatile(".byte 0x66; xsaveopt %0"
                                : "+m"(*static_cast<volatile char*>(t + 64))); },
     {{what::clwb, 64}}},
    {"the same on two lines",
     [](char* t) { asm volatile(".byte 0x66\n\txsaveopt %0\n"
                                : "+m"(*static_cast<volatile char*>(t + 64))); },
     {{what::clwb, 64}}},
    {"asm `data16 clflush`",
     [](char* t) { asm volatile("data16 clflush %0"
                                : "+m"(*static_cast<volatile char*>(t + 64))); },
     {{what::clflushopt, 64}}},
    {"asm, several on one line with fences",
     [](char* t) {
       asm volatile("mfence; clflush (%0); mfence # behind it" : : "r"(t) : "memory");
     },
     {{what::mfence}, {what::clflush, 0}, {what::mfence}},
     3},
    {"asm `sfence`",
     [](char*) {
       asm volatile("sfence" ::: "memory");
     },
     {{what::sfence}}},
    {"asm `mfence`",
     [](char*) {
       asm volatile("mfence" ::: "memory");
     },
     {{what::mfence}}},
    {"asm `clwb` of a global",
     [](char*) {
       asm volatile("clwb forms_target+64(%%rip)" ::: "memory");
     },
     {{what::clwb, 64}}},
    {"asm `clwb` with an index",
     [](char* t) {
       asm volatile("clwb 8(%0,%1,8)" : : "r"(t), "r"(std::uint64_t{8}) : "memory");
     },
     {{what::clwb, 72}}},
    {"asm `lock` instruction: a fence",
     [](char* t) {
       asm volatile("lock; addl $0, %0" : "+m"(*reinterpret_cast<int*>(t)) : : "cc", "memory");
     },
     {{what::mfence}}},
};

}  // namespace

std::span<const flush_form> flush_forms() { return table; }

}  // namespace forms
