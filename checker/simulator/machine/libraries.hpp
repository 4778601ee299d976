// Which code of this process is of libraries of simulated code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
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

// A part of a loaded object, as the loader has mapped it.
struct object_part {
  code_range where;
  bool is_writable = false;  // still, when it is loaded
};

// The parts of the loaded object that this address lies in.
[[nodiscard]] std::vector<object_part> parts_of_object_at(const void* address);
// Those of the one that was loaded by this path.
[[nodiscard]] std::vector<object_part> parts_of_object(const std::string& path);

}  // namespace pmlab::simulator
