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

#include <vector>

namespace pmlab::store_bench {
std::span<const known_pair_store> pair_peers() noexcept {
  static const std::vector<known_pair_store> all = {
#if defined(PMLAB_WITH_ROCKSDB)
    {{.name = "rocksdb",
      .what = "RocksDB, its files on the drives of the run",
      .has_staging = true,
      .has_memory_limit = true,
      .has_loss_bound = true},
     make_rocksdb},
#endif
#if defined(PMLAB_WITH_LEVELDB)
    {{.name = "leveldb",
      .what = "LevelDB, its files on the drive of the run",
      .has_memory_limit = true,
      .has_loss_bound = true},
     make_leveldb},
#endif
#if defined(PMLAB_WITH_LMDB)
    {{.name = "lmdb", .what = "LMDB, its file in memory or beside a file", .has_cache = false, .has_loss_bound = true},
     make_lmdb},
#endif
  };
  return all;
}

}  // namespace pmlab::store_bench
