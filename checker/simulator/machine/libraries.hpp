// Which code of this process is of libraries of simulated code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pmlab::simulator {

// Where code lies.
struct code_range {
  std::uintptr_t start = 0;
  std::size_t bytes = 0;
  [[nodiscard]] bool contains(const void* address) const noexcept {
    return reinterpret_cast<std::uintptr_t>(address) - start < bytes;
  }
};

// The code of the loaded libraries that call the machine's hooks, and of the loader, which allocates their thread-local
// objects. The program itself is none of them.
[[nodiscard]] std::vector<code_range> code_of_simulated_libraries();

}  // namespace pmlab::simulator
