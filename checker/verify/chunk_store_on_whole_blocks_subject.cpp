#include "checker/verify/chunk_store_subject.hpp"

namespace pmlab::verify {
namespace {

template <class Medium, class Drive>
using chunk_store_on_whole_blocks =
    chunk_store_subject<Medium, Drive, 512, stores::merge_policy::copy, stores::records_on_blocks>;
#if defined(PMLAB_MUTANT)
constexpr bool is_mutant = true;
#else
constexpr bool is_mutant = false;
#endif
const bool registered = register_volume<chunk_store_on_whole_blocks>(is_mutant);

}  // namespace
}  // namespace pmlab::verify
