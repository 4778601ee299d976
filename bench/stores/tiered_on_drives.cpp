// The tiered store on drives alone.
#include "bench/stores/tiered_subject.hpp"

namespace pmlab::store_bench {

template class tiered_subject<stores::no_memory>;

}  // namespace pmlab::store_bench
