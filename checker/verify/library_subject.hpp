// A library with PiBench's interface as a subject of verification.
#pragma once

#include "checker/verify/target.hpp"

#include <string>

namespace pmlab::verify {

// Loads the library, twice: one copy runs on the machine, and the other, untouched, recovers after crashes. Throws
// pmlab::error. One library per process.
[[nodiscard]] const subject& load_library(const std::string& path, bool scans);

}  // namespace pmlab::verify
