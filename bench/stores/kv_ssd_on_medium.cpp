#include "bench/stores/kv_ssd_subject.hpp"
#include "bench/stores/library_pair_stores.hpp"
#include "bench/stores/setup_medium.hpp"

namespace pmlab::store_bench {

std::unique_ptr<pair_subject> make_kv_ssd(const pair_setup& setup, const pair_drives& drives) {
  std::function<std::shared_ptr<bench::chosen_medium>()> another;  // nothing: a pool is one file
  if (!setup.medium.in_pool()) another = [&] { return make_medium(setup); };
  return std::make_unique<kv_ssd_subject<bench::chosen_medium>>(make_medium(setup), drives,
                                                                kv_options_of(setup, drives.main.size()), another);
}

}  // namespace pmlab::store_bench
