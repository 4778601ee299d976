// Whether hardware transactions work on this machine, and not only whether the CPU reports them.
#pragma once

#include <cstdint>

namespace pmlab::bench {

struct htm_probe {
  bool advertised = false;      // cpuid reports RTM
  bool executable = false;      // the instruction exists: no SIGILL
  std::uint64_t tried = 0;      // transactions begun
  std::uint64_t committed = 0;  // committed ones among them
  [[nodiscard]] bool works() const noexcept { return committed > 0; }
};

// Tries some transactions, ignoring cpuid: microcode and hypervisors can keep the flag and abort every transaction, or
// clear the flag. Replaces the handler of SIGILL while it runs. REQUIRES: the process has one thread.
[[nodiscard]] htm_probe probe_htm() noexcept;

}  // namespace pmlab::bench
