// chunk_store with its records on media::dram.
#include "bench/stores/chunk_store_subject.hpp"

namespace pmlab::store_bench {

template class chunk_store_subject<media::dram>;

}  // namespace pmlab::store_bench
