// Which memory the kernel really backs with 2 MB pages on this machine.
#pragma once

#include <string>

namespace pmlab::bench {

struct huge_page_probe {
  std::string anonymous_setting;  // setting of the kernel: "always", "madvise", "never"
  std::string shmem_setting;      // "always", "within_size", "advise", "never", "deny", "force"
  bool anonymous = false;         // DRAM with MADV_HUGEPAGE is on huge pages
  bool tmpfs_collapse = false;    // a file on /dev/shm moved to huge pages with MADV_COLLAPSE
  std::string tmpfs_problem;      // why it did not
};

// Tries both on a few megabytes and reads the kernel's result.
[[nodiscard]] huge_page_probe probe_huge_pages();

}  // namespace pmlab::bench
