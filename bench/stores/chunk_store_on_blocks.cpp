#include "bench/stores/chunk_store_on_blocks.hpp"

namespace pmlab::store_bench {

std::unique_ptr<volume_subject> make_chunk_store_on_blocks(const store_setup& setup, blocks::any_device& device) {
  return std::make_unique<chunk_store_on_blocks>(setup, device);
}

}  // namespace pmlab::store_bench
