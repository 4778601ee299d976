// Flush and fence instructions of the program's own code: each becomes a breakpoint, which records it.
#pragma once

#include <ucontext.h>

namespace pmlab::programs::recorder {

// Finds them in the objects that are loaded, except the system's: those flush through libpmem only.
void watch_flush_code() noexcept;

// True if the program stands behind such a breakpoint: the instruction is recorded, and the program continues after it.
[[nodiscard]] bool take_breakpoint(ucontext_t& context) noexcept;

}  // namespace pmlab::programs::recorder
