// The peers among the stores of pairs: those libraries that this build has.
#pragma once

#include "bench/stores/pair_stores.hpp"

#include <span>

namespace pmlab::store_bench {

// In the order of help texts.
[[nodiscard]] std::span<const known_pair_store> pair_peers() noexcept;

}  // namespace pmlab::store_bench
