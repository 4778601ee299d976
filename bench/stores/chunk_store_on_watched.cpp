// chunk_store with its records on bench::watched_medium.
#include "bench/stores/chunk_store_subject.hpp"

namespace pmlab::store_bench {

template class chunk_store_subject<bench::watched_medium>;

}  // namespace pmlab::store_bench
