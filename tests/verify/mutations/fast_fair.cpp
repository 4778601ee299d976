// pmlab::indexes::fast_fair with the mutations of fast_fair.toml planted.
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/verify/register_subject.hpp>

namespace {
constexpr bool is_mutant = true;
const bool registered = pmlab::verify::register_subject<pmlab::indexes::fast_fair>(is_mutant);
}  // namespace
