// The peers among the stores of pairs: libraries that a build has or has not.
#pragma once

#include "bench/stores/pair_stores.hpp"

#include <memory>
#include <span>
#include <string_view>

namespace pmlab::store_bench {

struct pair_peer {
  pair_store_description described;
  std::string_view package;  // of Debian
  // An empty store. Null: this build is without it.
  std::unique_ptr<pair_subject> (*make)(const pair_setup& setup, const pair_drives& drives) = nullptr;
};

// In the order of help texts; those that this build is without, too.
[[nodiscard]] std::span<const pair_peer> pair_peers() noexcept;
// Null: no peer has that name.
[[nodiscard]] const pair_peer* find_pair_peer(std::string_view name) noexcept;
// Throws pmlab::error, with the package, if this build is without it.
[[nodiscard]] std::unique_ptr<pair_subject> make_pair_peer(const pair_peer& peer, const pair_setup& setup,
                                                           const pair_drives& drives);

}  // namespace pmlab::store_bench
