// pmlab::pod::shared_dash in the benchmark: as it is, and without what a host remembers of its refreshes.
#include <pmlab/pod/shared_dash.hpp>
#include "bench/catalogue/register_shared_index.hpp"

namespace pmlab::bench {
namespace {

template <class Medium>
using table = pod::shared_dash<Medium>;
// One line, which the second one of a find forgets at once.
template <class Medium>
using refreshing_table = pod::shared_dash<Medium, pod::table_sizes{.remembered = 1}>;

const auto registered = register_shared_index<table>(
    "shared_dash", "hash table; a host refreshes a line if the version of its lock has moved (docs/hosts.md)");
const auto registered_refreshing =
    register_shared_index<refreshing_table>("shared_dash_refreshing", "shared_dash that refreshes each line it reads");

}  // namespace
}  // namespace pmlab::bench
