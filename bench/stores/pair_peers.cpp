#include "bench/stores/pair_peers.hpp"
#if defined(PMLAB_WITH_ROCKSDB)
#include "bench/stores/rocksdb_subject.hpp"
#endif
#if defined(PMLAB_WITH_LEVELDB)
#include "bench/stores/leveldb_subject.hpp"
#endif
#if defined(PMLAB_WITH_LMDB)
#include "bench/stores/lmdb_subject.hpp"
#endif
#include <pmlab/base/error.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace pmlab::store_bench {
std::span<const pair_peer> pair_peers() noexcept {
  static const std::vector<pair_peer> all = {
#if defined(PMLAB_WITH_ROCKSDB)
    {{.name = "rocksdb",
      .what = "RocksDB, its files on the drives of the run",
      .has_medium = false,
      .has_staging = true},
     make_rocksdb},
#endif
#if defined(PMLAB_WITH_LEVELDB)
    {{.name = "leveldb",
      .what = "LevelDB, its files on the drive of the run",
      .has_medium = false,
      .has_staging = false},
     make_leveldb},
#endif
#if defined(PMLAB_WITH_LMDB)
    {{.name = "lmdb", .what = "LMDB, its file in memory or beside a file", .has_medium = false, .has_staging = false},
     make_lmdb},
#endif
  };
  return all;
}

const pair_peer* find_pair_peer(std::string_view name) noexcept {
  const auto at = std::ranges::find_if(pair_peers(), [&](const pair_peer& p) { return p.described.name == name; });
  return at == pair_peers().end() ? nullptr : &*at;
}

std::unique_ptr<pair_subject> make_pair_peer(const pair_peer& peer, const pair_setup& setup,
                                             const pair_drives& drives) {
  if (drives.staging != nullptr && !peer.described.has_staging)
    throw error(std::string(peer.described.name) + " has one drive only",
                "leave --staging away, or measure another store");
  return peer.make(setup, drives);
}

}  // namespace pmlab::store_bench
