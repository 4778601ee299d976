#include "bench/stores/simulated_kv_ssd.hpp"
#include "bench/stores/simulated_library.hpp"

namespace pmlab::store_bench {

std::unique_ptr<pair_subject> make_simulated_kv_ssd(const pair_setup& setup, const pair_drives& drives) {
  static const auto make = reinterpret_cast<decltype(&pmlab_simulated_kv_ssd)>(simulated_library_function("kv_ssd"));
  return std::unique_ptr<pair_subject>(make(setup, drives));
}

}  // namespace pmlab::store_bench
