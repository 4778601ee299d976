#include "bench/stores/simulated_chunk_store.hpp"
#include "bench/stores/simulated_library.hpp"

namespace pmlab::store_bench {

std::unique_ptr<volume_subject> make_simulated_chunk_store(const store_setup& setup, blocks::any_device& device) {
  static const auto make =
      reinterpret_cast<decltype(&pmlab_simulated_chunk_store)>(simulated_library_function("chunk_store"));
  return std::unique_ptr<volume_subject>(make(setup, device));
}

}  // namespace pmlab::store_bench
