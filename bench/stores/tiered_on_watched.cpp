// The tiered store with its memtables in bench::watched_medium.
#include "bench/catalogue/watched_medium.hpp"
#include "bench/stores/tiered_subject.hpp"

namespace pmlab::store_bench {

template class tiered_subject<stores::memtable_on<bench::watched_medium>, bench::watched_medium>;

}  // namespace pmlab::store_bench
