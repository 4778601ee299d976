// The costs of a core and its caches, for any memory behind them: a server of Optane's time at about 3 GHz.
#pragma once

#include <pmlab/media/device/model.hpp>

#include <cstddef>
#include <cstdint>

namespace pmlab::simulator {

using media::picoseconds;

// Times in picoseconds, from the access to its end unless noted.
struct core_costs {
  picoseconds instructions = 450;          // the work between two accesses, and a store that is not waited for
  picoseconds first_level = 1'200;         // a load, with the work around it
  picoseconds second_level = 4'000;        // 14 cycles
  picoseconds last_level = 20'000;         // shared by all cores
  picoseconds transfer = 60'000;           // from another core's cache, or taking a line away from other cores
  picoseconds shared_transfer = 10'000;    // how long giving a copy keeps the next core waiting for the same line
  picoseconds locked_instruction = 6'000;  // on a line that the core owns: 18 cycles

  // Between several hosts: the profile has them.
  picoseconds host_transfer = 0;
  picoseconds host_invalidation = 0;
  picoseconds device_exchange = 0;
  picoseconds line_invalidation = 0;
  picoseconds load_fence = 0;

  std::uint64_t second_level_bytes = 1 << 20;

  // A load that misses near the previous miss, by not more than `nearby_lines`, takes its address from the same
  // pointer: the core has issued both as soon as it could, if no more than `window` accesses lie between.
  std::uintptr_t nearby_lines = 16;
  unsigned window = 64;  // loads in the 224 instructions that a core looks ahead
};

}  // namespace pmlab::simulator
