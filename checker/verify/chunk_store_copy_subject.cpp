#include "checker/verify/chunk_store_subject.hpp"

namespace pmlab::verify {
namespace {

template <class Medium, class Drive>
using chunk_store_copy = chunk_store_subject<Medium, Drive, 0, stores::merge_policy::copy>;
#if defined(PMLAB_MUTANT)
constexpr bool is_mutant = true;
#else
constexpr bool is_mutant = false;
#endif
const bool registered = register_volume<chunk_store_copy>(is_mutant);

}  // namespace
}  // namespace pmlab::verify
