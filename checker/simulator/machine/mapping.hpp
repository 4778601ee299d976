// Pages of memory straight from the kernel: zero, and costing nothing until they are touched.
#pragma once

#include "checker/simulator/machine/host_refusal.hpp"

#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

namespace pmlab::simulator {

class mapping {
 public:
  // Throws host_refusal. At `address`, which must be free, or (0) where the kernel likes.
  explicit mapping(std::size_t bytes, std::uintptr_t address = 0) : bytes_(bytes) {
    const int fixed = address == 0 ? 0 : MAP_FIXED_NOREPLACE;
    void* const area = ::mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
    if (area == MAP_FAILED)
      throw host_refusal("the simulated machine cannot map its memory",
                         "let this process have more of it (ulimit -v, containers)");
    start_ = static_cast<std::byte*>(area);
  }
  mapping(const mapping&) = delete;
  mapping& operator=(const mapping&) = delete;
  ~mapping() { ::munmap(start_, bytes_); }

  [[nodiscard]] std::byte* start() const noexcept { return start_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

  // Back to zero pages.
  void clear() noexcept { ::madvise(start_, bytes_, MADV_DONTNEED); }

  void hide() const noexcept { ::mprotect(start_, bytes_, PROT_NONE); }
  void show() const noexcept { ::mprotect(start_, bytes_, PROT_READ | PROT_WRITE); }

 private:
  std::byte* start_ = nullptr;
  std::size_t bytes_;
};

}  // namespace pmlab::simulator
