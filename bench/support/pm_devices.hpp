// The persistent memory that the kernel reports, found without tools.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::bench {

struct pm_devices {
  struct name_space {
    std::string name;  // "namespace0.0"
    std::string mode;  // "memory" (fsdax), "dax" (devdax), "raw", "safe" (sector)
    std::uint64_t bytes = 0;
  };
  std::vector<name_space> name_spaces;       // name spaces of /sys/bus/nd
  std::vector<std::string> dax_devices;      // /dev/dax*
  std::vector<std::string> dax_mounts;       // folders of file systems mounted with dax
  std::vector<std::string> writable_mounts;  // those of them where this user may make a pool

  [[nodiscard]] bool any() const noexcept {
    return !name_spaces.empty() || !dax_devices.empty() || !dax_mounts.empty();
  }
};

[[nodiscard]] pm_devices find_pm_devices();

}  // namespace pmlab::bench
