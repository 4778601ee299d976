// The system calls of blocks::file whose failures a test may cause.
#pragma once

#include <pmlab/blocks/device.hpp>

#include <cstdint>

#include <fcntl.h>

namespace pmlab::blocks {

// The system as it is. A test gives basic_file another class with these members: any thread may call them.
struct plain_system {
  // open(2); -1 and errno: it failed.
  [[nodiscard]] int open(const char* path, int flags) const noexcept { return ::open(path, flags); }

  // Bytes that the next system call requests when `bytes` are left of a transfer: fewer make it a short one.
  [[nodiscard]] std::uint32_t asked(operation /*what*/, std::uint32_t bytes) const noexcept { return bytes; }

  // The result of a call: bytes, 0 for the others, or a negated errno.
  [[nodiscard]] std::int32_t result(operation /*what*/, std::int32_t found) const noexcept { return found; }
};

}  // namespace pmlab::blocks
