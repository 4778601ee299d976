// Stores on the simulated machine. Each is in a library that is compiled so that the machine observes its accesses.
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include "bench/stores/pair_stores.hpp"
#include "bench/stores/subjects.hpp"

#include <memory>

namespace pmlab::store_bench {

// The first call of each loads its library, if load_library_of has not. Throws pmlab::error if it is not there.
[[nodiscard]] std::unique_ptr<volume_subject> make_simulated_chunk_store(const store_setup& setup,
                                                                         blocks::any_device& device);
[[nodiscard]] std::unique_ptr<pair_subject> make_simulated_kv_ssd(const pair_setup& setup, const pair_drives& drives);

}  // namespace pmlab::store_bench

// The functions of the libraries. Each throws pmlab::error as its store does. The caller owns the result.
extern "C" pmlab::store_bench::volume_subject* pmlab_simulated_chunk_store(const pmlab::store_bench::store_setup& setup,
                                                                           pmlab::blocks::any_device& device);
extern "C" pmlab::store_bench::pair_subject* pmlab_simulated_kv_ssd(const pmlab::store_bench::pair_setup& setup,
                                                                    const pmlab::store_bench::pair_drives& drives);
