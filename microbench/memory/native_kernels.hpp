// Kernels that are the CPU's own instructions.
#pragma once

#include "microbench/memory/kernels.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

namespace pmlab::microbench {

// The loop for a choice; REQUIRES: the CPU supports it (cpu_features.hpp).
using loop = void (*)(walk& way, std::uint64_t count);

[[nodiscard]] loop native_load_loop(const kernel_choice& choice, bool by_table);
[[nodiscard]] loop native_store_loop(const kernel_choice& choice, bool by_table);

// One access at a place.
using single = void (*)(std::byte* place, std::uint64_t bytes);
[[nodiscard]] single native_load(const kernel_choice& choice);
[[nodiscard]] single native_store(const kernel_choice& choice);

// Follows the chain of places; `way.base` is where it begins and ends.
void native_chase(walk& way, std::uint64_t count);

// memcpy, which no compiler leaves out although the bytes are never read.
inline void native_copy(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  std::memcpy(to, from, bytes);
  asm volatile("" : : "r"(to) : "memory");
}

[[nodiscard]] std::unique_ptr<kernels> make_native_kernels(const kernel_choice& choice);

}  // namespace pmlab::microbench
