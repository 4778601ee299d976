// pmlab::indexes::cceh under verification.
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/verify/register_subject.hpp>

namespace {
const bool registered = pmlab::verify::register_subject<pmlab::indexes::cceh>();
}
