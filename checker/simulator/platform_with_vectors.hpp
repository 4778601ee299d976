// The facts of the simulated machine as platform.hpp states them, but one: words that threads share are read by vectors
// where the CPU has them, as in the programs that are measured. The machine sees such a load as one of 16 or 32 bytes.
//
// Not the usual: virtual times would depend on the CPU of the host. Chosen by -DPMLAB_PLATFORM_HEADER.
#pragma once

#define PMLAB_SIMULATED_VECTORS
#include "checker/simulator/platform.hpp"
