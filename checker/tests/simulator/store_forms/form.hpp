// A form in which code can write to memory, or write memory back, and the report that the instrument must make of it.
#pragma once

#include <cstddef>
#include <span>

namespace forms {

enum class verdict { not_run, not_seen, seen, seen_with_value };

struct store_form {
  const char* name;
  verdict by_gnu;  // the least that must be seen of it, with this compiler
  verdict by_clang;
  void (*store)(char* target);
  const char* needs = "";  // feature of the CPU
};

// The expected report of a flush form: `kind` and, of a flush, the offset from `target`.
struct event {
  enum class what { clwb, clflushopt, clflush, sfence, mfence };
  what kind;
  std::ptrdiff_t offset = 0;
};

struct flush_form {
  const char* name;
  void (*run)(char* target);
  event expected[3];
  std::size_t events = 1;
};

// 64-byte aligned; the compiler knows neither content.
inline constexpr std::size_t area_bytes = 512;
extern "C" char forms_source[area_bytes];
extern "C" char forms_target[area_bytes];

std::span<const store_form> store_forms();
std::span<const flush_form> flush_forms();

}  // namespace forms
