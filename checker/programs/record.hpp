// The record of a program's run: all that it did to its pool file, in the order of its steps.
//
// The recorder, which is loaded into the program, appends to a file that both map; pmlab reads it when the program has
// ended. Every entry is this header and `bytes` of payload, padded to 8.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pmlab::programs {

enum class event : std::uint8_t {
  // Payload: a word whose bits name the words of the line at `at` that changed, and their new values, in ascending
  // order.
  store = 1,
  // The same, by an instruction whose stores go around the caches: durable at the next fence of its thread.
  streaming_store,
  flush,  // flush of `length` bytes at `at`
  // The same, of an instruction that needs no fence.
  complete_flush,
  fence,
  sync,     // sync of the whole file, by the system
  mark,     // payload: text
  stack,    // payload: addresses of code, the innermost first; `stack` is its number
  object,   // loaded at `at`, of `length` bytes; payload: its path
  pool,     // first mapping of a file of `at` bytes; payload: its path
  refusal,  // the run cannot be judged; payload: problem, newline, remedy
  end,      // end of the program; `at`: hash of the file's content (content_hash.hpp)
};

struct entry {
  std::uint64_t at = 0;
  std::uint64_t length = 0;
  std::uint32_t bytes = 0;
  std::uint32_t stack = 0;
  std::uint16_t thread = 0;
  event what = event::end;
  std::uint8_t spare[5] = {};
};
static_assert(sizeof(entry) == 32);

struct record_head {
  std::uint64_t magic = 0;
  std::uint64_t capacity = 0;          // capacity of the file
  std::atomic<std::uint64_t> used{0};  // entries end here
};
inline constexpr std::uint64_t record_magic = 0x3144524f4345524d;
inline constexpr std::size_t first_entry = 64;

inline constexpr std::size_t line_bytes = 64;
inline constexpr std::size_t words_of_line = 8;
inline constexpr std::size_t page_bytes = 4096;
inline constexpr std::size_t most_mark_bytes = 4096;

// Environment variables between pmlab and its recorder.
inline constexpr const char* record_variable = "PMLAB_RECORD";     // path of the record
inline constexpr const char* base_variable = "PMLAB_RECORD_BASE";  // path of the file's content at its first mapping

// A content is the sum of these over its words: it changes by a difference when a word does. Zero words add nothing.
[[nodiscard]] constexpr std::uint64_t hash_of_word(std::uint64_t at, std::uint64_t value) noexcept {
  if (value == 0) return 0;
  std::uint64_t x = value + at * 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  x ^= x >> 31;
  x = (x + at) * 0xd6e8feb86659fd93;
  return x ^ (x >> 32);
}

}  // namespace pmlab::programs
