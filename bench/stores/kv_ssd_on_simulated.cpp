// Key-value SSDs with their memory on the simulated machine: compiled so that the machine observes it, and loaded by
// pmlab-simulated. Flash and firmware are behind the virtual calls of any_device, in the program, and are not observed.
#include "checker/simulator/simulated.hpp"
#include "bench/stores/kv_ssd_subject.hpp"
#include "bench/stores/simulated_stores.hpp"

extern "C" pmlab::store_bench::pair_subject* pmlab_simulated_kv_ssd(const pmlab::store_bench::pair_setup& setup,
                                                                    const pmlab::store_bench::pair_drives& drives) {
  using pmlab::simulator::simulated;
  const auto memory = [&] { return std::make_unique<simulated>(setup.medium.profile, setup.medium_bytes); };
  return new pmlab::store_bench::kv_ssd_subject<simulated>(
      memory(), drives, pmlab::store_bench::kv_options_of(setup, drives.main.size()), memory);
}
