// Four entries in one cache line: the unit in which the indexes of pmlab store keys and values.
#pragma once

#include <pmlab/media/lines.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail {

inline constexpr std::size_t entries_per_line = 4;

// A key and its value always share a line, so that the order of their stores is the order in which they become
// durable; and the four keys are adjacent, so that a search reads half of the line.
//
//   0       8       16      24      32        40        48        56        64
//   | key 0 | key 1 | key 2 | key 3 | value 0 | value 1 | value 2 | value 3 |
struct alignas(media::cache_line_bytes) entry_line {
  std::array<std::atomic<std::uint64_t>, entries_per_line> keys;
  std::array<std::atomic<std::uint64_t>, entries_per_line> values;
};
static_assert(sizeof(entry_line) == media::cache_line_bytes);

}  // namespace pmlab::indexes::detail
