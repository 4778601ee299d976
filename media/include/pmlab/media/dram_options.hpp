// The options of a DRAM medium.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <cstdint>

namespace pmlab::media {

// Options of a DRAM medium.
struct dram_options {
  std::uint64_t capacity_bytes = 0;  // 0: no limit but the machine's memory
  bool huge_pages = true;            // request 2 MB pages from the kernel
  int numa_node = -1;                // jemalloc_dram: node to bind to; -1: where the allocating thread runs
};

}  // namespace pmlab::media
