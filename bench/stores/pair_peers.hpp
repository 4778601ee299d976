// The peers among the stores of pairs: those libraries that this build has.
#pragma once

#include "bench/stores/pair_stores.hpp"

#include <memory>
#include <span>
#include <string_view>

namespace pmlab::store_bench {

using pair_peer = known_pair_store;

// In the order of help texts.
[[nodiscard]] std::span<const pair_peer> pair_peers() noexcept;
// Null: no peer of this build has that name.
[[nodiscard]] const pair_peer* find_pair_peer(std::string_view name) noexcept;
// Throws pmlab::error: it cannot be on these drives.
[[nodiscard]] std::unique_ptr<pair_subject> make_pair_peer(const pair_peer& peer, const pair_setup& setup,
                                                           const pair_drives& drives);

}  // namespace pmlab::store_bench
