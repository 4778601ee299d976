// RocksDB as a store of pairs: its files are on the drives of a run, through peers/rocksdb_files.
//
// Several drives have an instance each; keys are spread by hash. With a staging drive, its log and its upper levels are
// there (db_paths), the rest on the drive of capacity. No compression. A Bloom filter of 10 bits for each key.
//
// Memory, of all instances together. With `memory_bytes`: half of it is for write buffers and half for the block cache,
// or `cache_bytes` for the cache and the rest for write buffers; index and filter blocks are in the cache. Without:
// write buffers of 1/32 of the data, 4 MiB to 256 MiB; a block cache of `cache_bytes`; index and filter blocks beside
// it. The sizes of levels and files have RocksDB's proportions to its write buffer.
//
// The log: synced by a timer every `loss_ms`, or by each write if that is 0 (its files are made with their size then,
// so that a sync is one write), or none. Background threads: as many as there are cores.
#pragma once

#include "bench/stores/pair_stores.hpp"

#include <memory>

namespace pmlab::store_bench {

[[nodiscard]] std::unique_ptr<pair_subject> make_rocksdb(const pair_setup& setup, const pair_drives& drives);

}  // namespace pmlab::store_bench
