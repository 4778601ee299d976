// A toy: a discarded block is expected to read as zeros (B4).
#include "redirecting_volume.hpp"

#include "checker/verify/register_volume.hpp"

namespace pmlab::toys {
namespace {

template <class Medium, class Drive>
using volume = redirecting_volume<Medium, Drive, flaw::discard_reads_zero>;
const bool registered = verify::register_volume<volume>(true);

}  // namespace
}  // namespace pmlab::toys
