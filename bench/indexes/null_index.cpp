// pmlab::indexes::null_index in the benchmark: what it costs is what the benchmark costs.
#include <pmlab/bench/register_index.hpp>
#include <pmlab/indexes/null_index.hpp>

namespace pmlab::bench {
namespace {

const auto registered =
    register_index<indexes::null_index>("keeps nothing: shows what the benchmark itself costs", keeps::nothing);

}  // namespace
}  // namespace pmlab::bench
