// The medium that the setup of a store names, of the type that the benchmark has for it. Not for virtual time.
#pragma once

#include "bench/catalogue/media_list.hpp"
#include "bench/catalogue/subject.hpp"

#include <cstdint>

namespace pmlab::store_bench {

// `Setup`: store_setup or pair_setup. `pool_bytes`: of a pool that is to be made.
template <class Setup>
[[nodiscard]] bench::subject_setup medium_setup_of(const Setup& setup, std::uint64_t pool_bytes) {
  bench::subject_setup of_medium;
  of_medium.medium = setup.medium;
  of_medium.pool_bytes = pool_bytes;
  of_medium.emulation = setup.emulation;
  return of_medium;
}

// make(std::unique_ptr<Medium>) of this medium. Throws pmlab::error: see the media's constructors.
template <class Setup, class Make>
[[nodiscard]] auto make_on_medium(const Setup& setup, std::uint64_t pool_bytes, Make&& make) {
  const bench::subject_setup of_medium = medium_setup_of(setup, pool_bytes);
  if (setup.medium.counted || setup.medium.emulated())
    return make(bench::medium_traits<bench::watched_medium>::make(of_medium));
  if (setup.medium.in_pool()) return make(bench::medium_traits<media::pmem>::make(of_medium));
  return make(bench::medium_traits<media::dram>::make(of_medium));
}

}  // namespace pmlab::store_bench
