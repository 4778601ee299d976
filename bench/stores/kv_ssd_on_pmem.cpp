// Key-value SSDs with their memory on media::pmem.
#include <pmlab/media/pmem.hpp>
#include "bench/stores/kv_ssd_subject.hpp"

namespace pmlab::store_bench {

template class kv_ssd_subject<media::pmem>;

}  // namespace pmlab::store_bench
