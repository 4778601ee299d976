// Key-value SSDs with their memory on media::dram.
#include "tools/stores/kv_ssd_subject.hpp"
#include <pmlab/media/dram.hpp>

namespace pmlab::store_bench {

template class kv_ssd_subject<media::dram>;

}  // namespace pmlab::store_bench
