// A store of pairs behind a cache of the host, and the memory that the host has for both: its cache, and the keys and
// values of the operations under way.
#pragma once

#include "bench/stores/pair_subject.hpp"

#include <cstdint>
#include <memory>

namespace pmlab::store_bench {

// `cache_bytes` 0: no cache; memory is counted then, too. `inner` has no host memory of its own but what it reports.
[[nodiscard]] std::unique_ptr<pair_subject> with_host_cache(std::unique_ptr<pair_subject> inner,
                                                            std::uint64_t cache_bytes);

}  // namespace pmlab::store_bench
