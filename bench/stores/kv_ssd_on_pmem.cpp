// Key-value SSDs with their memory on media::pmem.
#include "tools/stores/kv_ssd_subject.hpp"
#include <pmlab/media/pmem.hpp>

namespace pmlab::store_bench {

template class kv_ssd_subject<media::pmem>;

}  // namespace pmlab::store_bench
