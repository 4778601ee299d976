// How large a working set this machine has room for.
#pragma once

#include "bench/catalogue/medium_spec.hpp"

#include <cstdint>

namespace pmlab::microbench {

// Bytes that a run may use of a real medium without making the machine unusable: half of the free DRAM, nine tenths of
// the file system of a pool (on tmpfs not more than of DRAM). A pool that is a device: all of its space.
[[nodiscard]] std::uint64_t room_on(const bench::medium_spec& medium);

}  // namespace pmlab::microbench
