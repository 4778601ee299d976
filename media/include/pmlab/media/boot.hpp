// Which start of the machine this is: what a killed process has left in the caches is there until the next one.
#pragma once

#include <pmlab/base/durable_name.hpp>

#include <array>
#include <cstdint>

#include <fcntl.h>
#include <unistd.h>

namespace pmlab::media {

// Another number after each start of the kernel, the same in all processes until then; never 0. 1: the system does not
// tell (no /proc).
[[nodiscard]] inline std::uint64_t this_boot() noexcept {
  constexpr std::uint64_t unknown = 1;
  const descriptor file(::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC));
  std::array<char, 64> text{};
  if (!file.is_open() || ::read(file.get(), text.data(), text.size()) <= 0) return unknown;
  // A UUID, of which the last 64 bits are random but for two.
  std::uint64_t number = 0;
  for (const char c : text) {
    if (c >= '0' && c <= '9') number = number << 4 | static_cast<std::uint64_t>(c - '0');
    if (c >= 'a' && c <= 'f') number = number << 4 | static_cast<std::uint64_t>(c - 'a' + 10);
  }
  return number | 2;
}

}  // namespace pmlab::media
