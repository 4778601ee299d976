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
//
// `log_bytes` other than 0: a log is made with that size, of zeros, and used again without its size changing, so that a
// sync of it is one write. It needs DBOptions::recycle_log_file_num > 0 and WALRecoveryMode::kSkipAnyCorruptedRecords:
// RocksDB then gives each record the number of its log, and so tells the content of an earlier one.
[[nodiscard]] std::unique_ptr<rocksdb::Env> rocksdb_environment(block_files& files, std::uint64_t log_bytes = 0);

}  // namespace pmlab::stores
