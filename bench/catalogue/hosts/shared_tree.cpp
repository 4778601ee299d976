// pmlab::pod::shared_tree in the benchmark: as it is, and without what a host remembers of its refreshes.
#include <pmlab/pod/shared_tree.hpp>
#include "bench/catalogue/register_shared_index.hpp"

namespace pmlab::bench {
namespace {

template <class Medium>
using tree = pod::shared_tree<Medium>;
// One node, which a way through several levels forgets at once.
template <class Medium>
using refreshing_tree = pod::shared_tree<Medium, pod::tree_sizes{.remembered = 1}>;

const auto registered = register_shared_index<tree>(
    "shared_tree", "B+tree; a host refreshes a node if the version of its lock has moved (docs/hosts.md)");
const auto registered_refreshing =
    register_shared_index<refreshing_tree>("shared_tree_refreshing", "shared_tree that refreshes each node on the way");

}  // namespace
}  // namespace pmlab::bench
