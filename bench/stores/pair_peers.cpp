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
#include <array>
#include <string>

namespace pmlab::store_bench {
namespace {

#if !defined(PMLAB_WITH_ROCKSDB)
constexpr auto make_rocksdb = nullptr;
#endif
#if !defined(PMLAB_WITH_LEVELDB)
constexpr auto make_leveldb = nullptr;
#endif
#if !defined(PMLAB_WITH_LMDB)
constexpr auto make_lmdb = nullptr;
#endif

constexpr std::array<pair_peer, 3> all{
    {{{.name = "rocksdb",
       .what = "RocksDB, its files on the drives of the run",
       .has_medium = false,
       .has_staging = true},
      "librocksdb-dev",
      make_rocksdb},
     {{.name = "leveldb",
       .what = "LevelDB, its files on the drive of the run",
       .has_medium = false,
       .has_staging = false},
      "libleveldb-dev",
      make_leveldb},
     {{.name = "lmdb", .what = "LMDB, its file in memory or beside a file", .has_medium = false, .has_staging = false},
      "liblmdb-dev",
      make_lmdb}}};

}  // namespace

std::span<const pair_peer> pair_peers() noexcept { return all; }

const pair_peer* find_pair_peer(std::string_view name) noexcept {
  const auto at = std::ranges::find_if(all, [&](const pair_peer& p) { return p.described.name == name; });
  return at == all.end() ? nullptr : &*at;
}

std::unique_ptr<pair_subject> make_pair_peer(const pair_peer& peer, const pair_setup& setup,
                                             const pair_drives& drives) {
  const std::string name(peer.described.name);
  if (peer.make == nullptr)
    throw error("this program was built without " + name,
                "install the package " + std::string(peer.package) + " and build it again");
  if (drives.staging != nullptr && !peer.described.has_staging)
    throw error(name + " has one drive only", "leave --staging away, or measure another store");
  return peer.make(setup, drives);
}

}  // namespace pmlab::store_bench
