// pmlab::pod::shared_tree under verification: the few nodes of a short history share locks, and do not fit into what a
// host remembers of them.
#include "checker/verify/compiled_as_mutant.hpp"
#include "checker/verify/register_subject.hpp"
#include <pmlab/pod/shared_tree.hpp>

namespace {
using pmlab::verify::compiled_as_mutant;
template <class Medium>
using tree_of_few_locks = pmlab::pod::shared_tree<Medium, pmlab::pod::tree_sizes{.locks = 2, .remembered = 4}>;
const bool registered =
    pmlab::verify::register_subject<tree_of_few_locks,
                                    pmlab::verify::compiled_parts{.image = compiled_as_mutant, .in_dram = false}>(
        compiled_as_mutant);
}  // namespace
