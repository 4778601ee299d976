// pmlab::pod::shared_ring under verification.
#include "checker/verify/register_subject.hpp"
#include <pmlab/pod/shared_ring.hpp>

namespace {
const bool registered =
    pmlab::verify::register_subject<pmlab::pod::shared_ring,
                                    pmlab::verify::compiled_parts{.image = false, .in_dram = false}>();
}
