// The tiered store with its memtables in a medium.
#include "bench/stores/library_pair_stores.hpp"
#include "bench/stores/setup_medium.hpp"
#include "bench/stores/tiered_subject.hpp"

namespace pmlab::store_bench {

std::unique_ptr<pair_subject> make_tiered_on_medium(const pair_setup& setup, const pair_drives& drives) {
  using medium = bench::chosen_medium;
  return std::make_unique<tiered_subject<stores::memtable_on<medium>, medium>>(setup, drives, make_medium(setup));
}

}  // namespace pmlab::store_bench
