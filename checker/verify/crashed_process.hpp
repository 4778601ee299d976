// A crash of a third-party library: a process in which its memory is the crash image, and nothing else of it remains.
#pragma once

#include "checker/simulator/machine/persistent_memory.hpp"

#include <cstdint>
#include <functional>
#include <span>
#include <string>

namespace pmlab::verify {

// Runs `recover` in a copy of this process in which `memory` holds the crash image of `choice`. Returns its result, or
// how the process died. It has a few seconds.
[[nodiscard]] std::string in_crashed_process(simulator::persistent_memory& memory,
                                             std::span<const std::uint32_t> choice,
                                             const std::function<std::string()>& recover);

// The processor time, in seconds, of the process that does so now. Negative: there is none.
[[nodiscard]] double seconds_of_crashed_process();

}  // namespace pmlab::verify
