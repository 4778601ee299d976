// A toy: the flush is submitted together with the writes that it is to cover (B7).
#include "redirecting_volume.hpp"

#include "checker/verify/register_volume.hpp"

namespace pmlab::toys {
namespace {

template <class Medium, class Drive>
using volume = redirecting_volume<Medium, Drive, flaw::flush_before_completion>;
const bool registered = verify::register_volume<volume>(true);

}  // namespace
}  // namespace pmlab::toys
