// chunk_store with its records on the memory of the simulated machine: compiled so that the machine observes it, and
// loaded by pmlab-simulated. The drive is behind the virtual calls of any_device, in the program, and is not observed.
#include "bench/stores/chunk_store_on_blocks.hpp"
#include "bench/stores/chunk_store_on_kv.hpp"
#include "bench/stores/chunk_store_subject.hpp"
#include "bench/stores/level1_openers.hpp"
#include "bench/stores/simulated_stores.hpp"

namespace pmlab::store_bench {

template std::shared_ptr<erased::any_index> open_level1<simulator::simulated>(std::string_view, simulator::simulated&,
                                                                              std::string_view);

}  // namespace pmlab::store_bench

extern "C" pmlab::store_bench::volume_subject* pmlab_simulated_chunk_store(const pmlab::store_bench::store_setup& setup,
                                                                           pmlab::blocks::any_device& device) {
  using pmlab::simulator::simulated;
  if (setup.container == "blocks") return new pmlab::store_bench::chunk_store_on_blocks(setup, device);
  if (setup.container == "kv")
    return new pmlab::store_bench::chunk_store_on_kv<simulated>(
        setup, std::make_unique<simulated>(setup.medium.profile, setup.medium_bytes), device);
  return new pmlab::store_bench::chunk_store_subject<simulated>(
      setup, std::make_unique<simulated>(setup.medium.profile, setup.medium_bytes), device);
}
