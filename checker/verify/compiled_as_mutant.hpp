// Whether a source is a copy of a store's subject with a planted defect (mutation_test.py).
#pragma once

namespace pmlab::verify {

#if defined(PMLAB_MUTANT)
constexpr bool compiled_as_mutant = true;
#else
constexpr bool compiled_as_mutant = false;
#endif

}  // namespace pmlab::verify
