// Key-value SSDs with their memory on bench::watched_medium.
#include "tools/catalogue/watched_medium.hpp"
#include "tools/stores/kv_ssd_subject.hpp"

namespace pmlab::store_bench {

template class kv_ssd_subject<bench::watched_medium>;

}  // namespace pmlab::store_bench
