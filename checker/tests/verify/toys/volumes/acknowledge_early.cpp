// A toy: a write is acknowledged while its data lie in the drive's volatile cache (B2).
#include "redirecting_volume.hpp"

#include "checker/verify/register_volume.hpp"

namespace pmlab::toys {
namespace {

template <class Medium, class Drive>
using volume = redirecting_volume<Medium, Drive, flaw::acknowledge_early>;
const bool registered = verify::register_volume<volume>(true);

}  // namespace
}  // namespace pmlab::toys
