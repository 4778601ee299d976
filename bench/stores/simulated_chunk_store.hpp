// chunk_store on the simulated machine, from a library whose accesses the machine observes.
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include "bench/stores/subjects.hpp"
#include "bench/stores/volume_subject.hpp"

#include <memory>

namespace pmlab::store_bench {

// Loads the library at the first call. Throws pmlab::error if it is not there.
[[nodiscard]] std::unique_ptr<volume_subject> make_simulated_chunk_store(const store_setup& setup,
                                                                         blocks::any_device& device);

}  // namespace pmlab::store_bench

// The library's. Throws pmlab::error as the store does. The caller owns the result.
extern "C" pmlab::store_bench::volume_subject* pmlab_simulated_chunk_store(const pmlab::store_bench::store_setup& setup,
                                                                           pmlab::blocks::any_device& device);
