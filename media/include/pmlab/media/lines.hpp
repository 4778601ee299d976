// Sizes of the units in which memory is moved, and the loop over the cache lines of a range.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace pmlab::media {

// The unit of the CPU's caches, of a flush, and of the order in which stores become durable.
inline constexpr std::size_t cache_line_bytes = 64;

// The unit in which an Optane device reads and writes its media ("XPLine").
inline constexpr std::size_t xpline_bytes = 256;

// As many bytes as the lines have that `bytes` of them need.
template <std::unsigned_integral Bytes>
[[nodiscard]] constexpr Bytes whole_lines(Bytes bytes) noexcept {
  return (bytes + cache_line_bytes - 1) / cache_line_bytes * cache_line_bytes;
}

// Calls `visit(address)` with the start of every cache line that [start, start + bytes) touches, in ascending order.
// An empty range touches none.
template <class Visit>
void for_each_line(const void* start, std::size_t bytes, Visit&& visit) {
  const auto first = reinterpret_cast<std::uintptr_t>(start);
  const std::uintptr_t end = first + bytes;
  if (bytes == 0) return;
  for (std::uintptr_t line = first & ~(cache_line_bytes - 1); line < end; line += cache_line_bytes) visit(line);
}

}  // namespace pmlab::media
