// Accesses that the simulated machine cannot see.
#pragma once

#include <cstdint>

namespace pmlab::tests {

// Compiled as any other code is.
void store_unseen(std::uint64_t* word, std::uint64_t value);

}  // namespace pmlab::tests
