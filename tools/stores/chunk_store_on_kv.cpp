#include "tools/stores/chunk_store_on_kv.hpp"

#include "tools/catalogue/media_list.hpp"

namespace pmlab::store_bench {
namespace {

template <class Medium>
std::unique_ptr<volume_subject> make_on(const store_setup& setup, std::uint64_t pool_bytes,
                                        blocks::any_device& device) {
  bench::subject_setup of_medium;
  of_medium.medium = setup.medium;
  of_medium.pool_bytes = pool_bytes;
  of_medium.emulation = setup.emulation;
  return std::make_unique<chunk_store_on_kv<Medium>>(setup, bench::medium_traits<Medium>::make(of_medium), device);
}

}  // namespace

std::unique_ptr<volume_subject> make_chunk_store_on_kv(const store_setup& setup, std::uint64_t pool_bytes,
                                                       blocks::any_device& device) {
  if (setup.medium.counted || setup.medium.emulated()) return make_on<bench::watched_medium>(setup, pool_bytes, device);
  if (setup.medium.in_pool()) return make_on<media::pmem>(setup, pool_bytes, device);
  return make_on<media::dram>(setup, pool_bytes, device);
}

}  // namespace pmlab::store_bench
