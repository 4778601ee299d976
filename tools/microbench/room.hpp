// How large a working set this machine has room for.
#pragma once

#include "tools/catalogue/medium_spec.hpp"

#include <cstdint>

namespace pmlab::microbench {

// Bytes that a run may take of a real medium and leave the machine usable: half of the DRAM that is free, nine tenths of
// the file system of a pool (on tmpfs not more than of DRAM). A pool that is a device has room for what it has room for.
[[nodiscard]] std::uint64_t room_on(const bench::medium_spec& medium);

}  // namespace pmlab::microbench
