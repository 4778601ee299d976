// pmlab::pod::shared_ring under verification.
#include "checker/verify/compiled_as_mutant.hpp"
#include "checker/verify/register_subject.hpp"
#include <pmlab/pod/shared_ring.hpp>

namespace {
using pmlab::verify::compiled_as_mutant;
const bool registered =
    pmlab::verify::register_subject<pmlab::pod::shared_ring,
                                    pmlab::verify::compiled_parts{.image = compiled_as_mutant, .in_dram = false}>(
        compiled_as_mutant);
}  // namespace
