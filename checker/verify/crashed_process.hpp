// A crash of a third-party library: a process in which its memory is the crash image, and nothing else of it remains.
#pragma once

#include "checker/simulator/machine/persistent_memory.hpp"

#include <functional>
#include <string>

namespace pmlab::verify {

// Runs `recover` in a copy of this process in which `crash` has made `memory` a crash image. Returns its result, or how
// the process died. It has a few seconds.
[[nodiscard]] std::string in_crashed_process(simulator::persistent_memory& memory, const std::function<void()>& crash,
                                             const std::function<std::string()>& recover);

// The processor time, in seconds, of the process that does so now. Negative: there is none.
[[nodiscard]] double seconds_of_crashed_process();

}  // namespace pmlab::verify
