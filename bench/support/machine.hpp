// The machine and the build that figures come from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pmlab::bench {

struct machine_facts {
  std::string cpu;     // "Intel(R) Xeon(R) Platinum 8380", as the kernel names it
  unsigned cores = 0;  // CPUs that this process may use
  unsigned numa_nodes = 1;
  std::string kernel;      // "Linux 6.1.0-18-amd64 x86_64"
  std::string flush;       // the instruction that writes a line back: "clwb"
  std::string simd;        // the widest vectors that the indexes use here (base/simd.hpp): "avx2"
  std::string huge_pages;  // the kernel's setting for anonymous memory: "always", "madvise", "never"
  std::string compiler;    // compiler of this build: "g++ 12.2.0"
  std::string flags;       // flags of this build
  std::string commit;      // commit of this build: from `git describe --always --dirty`, or "unknown"
  std::string version;     // version of pmlab
  std::string date;        // now, UTC: "2026-03-01T12:00:00Z"
};

[[nodiscard]] machine_facts facts_of_this_machine();

// The first line of a file, without its end; empty if there is none. For the small files of /sys and /proc.
[[nodiscard]] std::string first_line(const std::string& path);

// Bytes of DRAM that programs can still allocate: of the machine, or of the container that this process is in. The
// greatest number, if unknown.
[[nodiscard]] std::uint64_t available_memory();

// "always [madvise] never" -> "madvise".
[[nodiscard]] std::string chosen_word(std::string_view line);

}  // namespace pmlab::bench
