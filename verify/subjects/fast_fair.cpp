// pmlab::indexes::fast_fair under verification.
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/verify/register_subject.hpp>

namespace {
const bool registered = pmlab::verify::register_subject<pmlab::indexes::fast_fair>();
}
