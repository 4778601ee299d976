// Key-value SSDs with their memory on media::dram.
#include <pmlab/media/dram.hpp>
#include "bench/stores/kv_ssd_subject.hpp"

namespace pmlab::store_bench {

template class kv_ssd_subject<media::dram>;

}  // namespace pmlab::store_bench
