// pmlab::pod::shared_dash under verification: the groups of a short history share locks. A host forgets segments soon,
// and some of their lines. With fewer slots, a line of the stash would take the slot of the link, and a line that is
// remembered wrongly would be forgotten before it is read.
#include "checker/verify/compiled_as_mutant.hpp"
#include "checker/verify/register_subject.hpp"
#include <pmlab/pod/shared_dash.hpp>

namespace {
using pmlab::verify::compiled_as_mutant;
template <class Medium>
using table_of_few_locks =
    pmlab::pod::shared_dash<Medium, pmlab::pod::table_sizes{
                                        .locks = 2, .stash_locks = 1, .remembered = 256, .known_places = 4}>;
const bool registered =
    pmlab::verify::register_subject<table_of_few_locks,
                                    pmlab::verify::compiled_parts{.image = compiled_as_mutant, .in_dram = false}>(
        compiled_as_mutant);
}  // namespace
