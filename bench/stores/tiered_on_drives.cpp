// The tiered store on drives alone.
#include "bench/stores/library_pair_stores.hpp"
#include "bench/stores/tiered_subject.hpp"

namespace pmlab::store_bench {

std::unique_ptr<pair_subject> make_tiered_on_drives(const pair_setup& setup, const pair_drives& drives) {
  return std::make_unique<tiered_subject<stores::no_memory>>(setup, drives);
}

}  // namespace pmlab::store_bench
