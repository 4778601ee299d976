// Key-value SSDs with their memory on bench::watched_medium.
#include "bench/catalogue/watched_medium.hpp"
#include "bench/stores/kv_ssd_subject.hpp"

namespace pmlab::store_bench {

template class kv_ssd_subject<bench::watched_medium>;

}  // namespace pmlab::store_bench
