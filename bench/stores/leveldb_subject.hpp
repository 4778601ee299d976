// LevelDB as a store of pairs: its files are on the drives of a run, through peers/leveldb_files.
//
// Several drives have an instance each; keys are spread by hash. No compression, a Bloom filter of 10 bits for each
// key. Memory as rocksdb_subject.hpp has it, but that LevelDB has two write buffers, and index and filter blocks are
// beside the cache. It has a log always: synced by a timer every `loss_ms`, or by each write if that is 0. The sizes of
// its levels are fixed: 10 MiB, and ten times as much for each below.
#pragma once

#include "bench/stores/pair_stores.hpp"

#include <memory>

namespace pmlab::store_bench {

[[nodiscard]] std::unique_ptr<pair_subject> make_leveldb(const pair_setup& setup, const pair_drives& drives);

}  // namespace pmlab::store_bench
