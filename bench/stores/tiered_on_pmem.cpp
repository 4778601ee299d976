// The tiered store with its memtables in media::pmem.
#include "tools/stores/tiered_subject.hpp"
#include <pmlab/media/pmem.hpp>

namespace pmlab::store_bench {

template class tiered_subject<stores::memtable_on<media::pmem>, media::pmem>;

}  // namespace pmlab::store_bench
