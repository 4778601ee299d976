// pmlab::indexes::cceh in the benchmark.
#include <pmlab/bench/register_index.hpp>
#include <pmlab/indexes/cceh.hpp>

namespace pmlab::bench {
namespace {

const auto registered =
    register_index<indexes::cceh>("extendible hash table with 256-byte windows, instant recovery (FAST'19)");

}  // namespace
}  // namespace pmlab::bench
