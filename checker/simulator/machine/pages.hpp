// Large areas of a mapping: what was never touched costs nothing.
#pragma once

#include "checker/simulator/machine/mapping.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include <sys/mman.h>

namespace pmlab::simulator {

inline constexpr std::size_t page_bytes = 4096;

// The bytes [from, end) of the mapping are zero again. Many of them are freed to the kernel.
inline void clear(const mapping& m, std::size_t from, std::size_t end) noexcept {
  constexpr std::size_t few = std::size_t{1} << 20;
  const std::size_t whole_from = (from + page_bytes - 1) & ~(page_bytes - 1);
  const std::size_t whole_end = end & ~(page_bytes - 1);
  if (from >= end) return;
  if (whole_from >= whole_end || (end - from < few && end != m.bytes())) {
    std::memset(m.start() + from, 0, end - from);
    return;
  }
  std::memset(m.start() + from, 0, whole_from - from);
  ::madvise(m.start() + whole_from, whole_end - whole_from, MADV_DONTNEED);
  std::memset(m.start() + whole_end, 0, end - whole_end);
}

// Whether each page below `end` was touched. An untouched page is zero.
[[nodiscard]] inline std::vector<bool> touched_pages(const mapping& m, std::size_t end) {
  const std::size_t pages = (end + page_bytes - 1) / page_bytes;
  std::vector<unsigned char> resident(pages);
  if (pages == 0 || ::mincore(m.start(), end, resident.data()) != 0) return std::vector<bool>(pages, true);
  std::vector<bool> touched(pages);
  for (std::size_t p = 0; p < pages; ++p) touched[p] = (resident[p] & 1) != 0;
  return touched;
}

}  // namespace pmlab::simulator
