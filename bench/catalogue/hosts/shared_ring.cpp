// pmlab::pod::shared_ring in the benchmark.
#include <pmlab/pod/shared_ring.hpp>
#include "bench/catalogue/register_shared_index.hpp"

namespace pmlab::bench {
namespace {

template <class Medium>
using ring = pod::shared_ring<Medium>;

const auto registered =
    register_shared_index<ring>("shared_ring", "map of up to 192 entries; each find refreshes three lines");

}  // namespace
}  // namespace pmlab::bench
