// A toy: zeros and data are written to one block at once, and the data are expected to win (B3).
#include "redirecting_volume.hpp"

#include "checker/verify/register_volume.hpp"

namespace pmlab::toys {
namespace {

template <class Medium, class Drive>
using volume = redirecting_volume<Medium, Drive, flaw::overlapping_writes>;
const bool registered = verify::register_volume<volume>(true);

}  // namespace
}  // namespace pmlab::toys
