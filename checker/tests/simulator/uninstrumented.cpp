// Accesses that the simulated machine cannot see.
#include "checker/tests/simulator/uninstrumented.hpp"

namespace pmlab::tests {

void store_unseen(std::uint64_t* word, std::uint64_t value) { *word = value; }

}  // namespace pmlab::tests
