#include "bench/stores/chunk_store_on_kv.hpp"
#include "bench/stores/setup_medium.hpp"

namespace pmlab::store_bench {

std::unique_ptr<volume_subject> make_chunk_store_on_kv(const store_setup& setup, std::uint64_t pool_bytes,
                                                       blocks::any_device& device) {
  return make_on_medium(setup, pool_bytes, [&](auto medium) -> std::unique_ptr<volume_subject> {
    using medium_type = typename decltype(medium)::element_type;
    return std::make_unique<chunk_store_on_kv<medium_type>>(setup, std::move(medium), device);
  });
}

}  // namespace pmlab::store_bench
