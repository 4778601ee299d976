// Memory that the kernel leaves to the control groups of this process.
#pragma once

#include <cstdint>
#include <string>

namespace pmlab::bench {

// The least that is left of a limit on memory: of the group that this process is in, and of those around it, by both
// versions of control groups. Cached files count as free, which the kernel drops. The greatest number: there is no
// limit.
//
// `membership`: /proc/self/cgroup, where the groups of this process are; `mounts`: /sys/fs/cgroup, below which they
// are.
[[nodiscard]] std::uint64_t available_to_control_group(const std::string& membership, const std::string& mounts);

}  // namespace pmlab::bench
