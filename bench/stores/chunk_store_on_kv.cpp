#include "bench/stores/chunk_store_on_kv.hpp"
#include "bench/stores/setup_medium.hpp"

namespace pmlab::store_bench {

std::unique_ptr<volume_subject> make_chunk_store_on_kv(const store_setup& setup, blocks::any_device& device) {
  return std::make_unique<chunk_store_on_kv<bench::chosen_medium>>(setup, make_medium(setup), device);
}

}  // namespace pmlab::store_bench
