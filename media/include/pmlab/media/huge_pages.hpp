// 2 MB pages under memory that is mapped already.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

namespace pmlab::media {

// The bytes of a huge page of x86-64: 2 MiB.
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

// Requests huge pages from the kernel for [start, start + bytes), private memory that was not touched yet. The kernel
// uses small pages if it has no huge ones.
inline void use_huge_pages(void* start, std::size_t bytes) noexcept {
#if defined(MADV_HUGEPAGE)
  madvise(start, bytes, MADV_HUGEPAGE);
#else
  static_cast<void>(start);
  static_cast<void>(bytes);
#endif
}

// Asks the kernel to back the whole 2 MB units of [start, start + bytes) with huge pages now: a random access then
// costs one page walk less. Works on tmpfs with any `huge=` option of the mount (Linux 6.1 and later); units for which
// the kernel has no huge page stay on small pages. Returns false if the kernel does not support the request.
inline bool collapse_to_huge_pages(void* start, std::size_t bytes) noexcept {
  constexpr int madv_collapse = 25;
  const auto first = (reinterpret_cast<std::uintptr_t>(start) + huge_page_bytes - 1) & ~(huge_page_bytes - 1);
  const auto end = (reinterpret_cast<std::uintptr_t>(start) + bytes) & ~(huge_page_bytes - 1);
  if (end <= first) return true;
  return madvise(reinterpret_cast<void*>(first), end - first, madv_collapse) == 0;
}

}  // namespace pmlab::media
