// A toy: a block of 4096 bytes is overwritten in place on a drive that keeps 512 bytes whole (B1).
#include "redirecting_volume.hpp"

#include "checker/verify/register_volume.hpp"

namespace pmlab::toys {
namespace {

template <class Medium, class Drive>
using volume = redirecting_volume<Medium, Drive, flaw::torn_block>;
const bool registered = verify::register_volume<volume>(true);

}  // namespace
}  // namespace pmlab::toys
