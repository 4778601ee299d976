// pmlab::indexes::fast_fair in the benchmark.
#include <pmlab/bench/register_index.hpp>
#include <pmlab/indexes/fast_fair.hpp>

namespace pmlab::bench {
namespace {

const auto registered =
    register_index<indexes::fast_fair>("B+tree with sorted nodes, lock-free reads, instant recovery (FAST'18)");

}  // namespace
}  // namespace pmlab::bench
