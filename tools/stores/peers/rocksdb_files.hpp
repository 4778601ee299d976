// RocksDB on a block device: its file system interface over block_files.
//
// RocksDB's bytes then go through the same devices as those of pmlab's stores: counted by stream (log, data, manifest),
// emulated, recorded. There is no page cache below it: give RocksDB a block cache of the size that is compared.
#pragma once

#include "tools/stores/peers/block_files.hpp"

#include <rocksdb/env.h>

#include <memory>

namespace pmlab::stores {

// An environment whose files are `files`, which outlives it. Time, threads and scheduling are those of RocksDB's default
// environment. Its information log is not written.
[[nodiscard]] std::unique_ptr<rocksdb::Env> rocksdb_environment(block_files& files);

}  // namespace pmlab::stores
