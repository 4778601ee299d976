// An allocator of whole pages: for memory that measured code touches, and that shares no page with anything else.
#pragma once

#include <cstddef>
#include <new>

namespace pmlab::bench {

template <class T>
struct on_pages {
  using value_type = T;
  static constexpr std::size_t page_bytes = 4096;

  on_pages() = default;
  template <class Other>
  explicit(false) on_pages(const on_pages<Other>& /*same*/) noexcept {}

  [[nodiscard]] T* allocate(std::size_t count) {
    const std::size_t bytes = (count * sizeof(T) + page_bytes - 1) / page_bytes * page_bytes;
    return static_cast<T*>(::operator new (bytes, std::align_val_t{page_bytes}));
  }
  void deallocate(T* block, std::size_t /*count*/) noexcept { ::operator delete (block, std::align_val_t{page_bytes}); }

  friend bool operator==(const on_pages& /*one*/, const on_pages& /*other*/) noexcept { return true; }
};

}  // namespace pmlab::bench
