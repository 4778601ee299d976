// The CPU's prefetchers: reads their state, and switches them off during a run.
//
// Intel keeps four switches in model-specific register 0x1a4 of each core: 1 = off. The kernel shows registers as
// files, /dev/cpu/N/msr (module msr, root only).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::microbench {

// One object at a time in a process. Restores the registers in its destructor, and when the process is interrupted
// (SIGINT, SIGTERM, SIGHUP).
class prefetchers {
 public:
  // `folder`: where the kernel shows registers; another one for tests.
  explicit prefetchers(std::vector<int> cpus, std::string folder = "/dev/cpu");
  prefetchers(const prefetchers&) = delete;
  prefetchers& operator=(const prefetchers&) = delete;
  ~prefetchers();

  // "on", "off", "part off", or "unknown: " and why.
  [[nodiscard]] std::string state() const;

  // Throws pmlab::error where that is not permitted; nothing is changed then.
  void switch_off();

 private:
  void restore() noexcept;

  std::vector<int> cpus_;
  std::string folder_;
};

}  // namespace pmlab::microbench
