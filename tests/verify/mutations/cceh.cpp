// pmlab::indexes::cceh with the mutations of cceh.toml planted.
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/verify/register_subject.hpp>

namespace {
constexpr bool is_mutant = true;
const bool registered = pmlab::verify::register_subject<pmlab::indexes::cceh>(is_mutant);
}  // namespace
