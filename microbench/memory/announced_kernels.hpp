// Kernels for the simulated machine: each instruction that the native kernels execute is announced to the machine.
//
// Not by the compiler (docs/instrument.md): it cannot see loads in inline assembly, and would report the harness's own
// accesses too. So a case costs the harness nothing in virtual time, and AVX-512 and movdir64b need no CPU that has
// them. Stores do write their bytes; loads of all but chases do not read, since their values are not used.
#pragma once

#include "microbench/memory/kernels.hpp"

#include <memory>

namespace pmlab::microbench {

// In the program that has the machine, in a fiber whose time runs.
[[nodiscard]] std::unique_ptr<kernels> make_announced_kernels(const kernel_choice& choice);

}  // namespace pmlab::microbench
