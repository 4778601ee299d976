// Key-value SSDs on the simulated machine, from a library whose accesses the machine observes.
#pragma once

#include "bench/stores/pair_stores.hpp"
#include "bench/stores/pair_subject.hpp"

#include <memory>

namespace pmlab::store_bench {

// Loads the library at the first call. Throws pmlab::error if it is not there.
[[nodiscard]] std::unique_ptr<pair_subject> make_simulated_kv_ssd(const pair_setup& setup, const pair_drives& drives);

}  // namespace pmlab::store_bench

// The library's. Throws pmlab::error as the store does. The caller owns the result.
extern "C" pmlab::store_bench::pair_subject* pmlab_simulated_kv_ssd(const pmlab::store_bench::pair_setup& setup,
                                                                    const pmlab::store_bench::pair_drives& drives);
