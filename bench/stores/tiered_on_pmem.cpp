// The tiered store with its memtables in media::pmem.
#include <pmlab/media/pmem.hpp>
#include "bench/stores/tiered_subject.hpp"

namespace pmlab::store_bench {

template class tiered_subject<stores::memtable_on<media::pmem>, media::pmem>;

}  // namespace pmlab::store_bench
