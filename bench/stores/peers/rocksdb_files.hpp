// RocksDB on a block device: its file system interface over block_files.
//
// RocksDB's bytes then go through the same devices as those of pmlab's stores: counted by stream (log, data, manifest),
// emulated, recorded. There is no page cache below it: give RocksDB a block cache of the size that is compared.
#pragma once

#include "bench/stores/peers/block_files.hpp"

#include <rocksdb/env.h>

#include <memory>
#include <string>

namespace pmlab::stores {

// An environment whose files are `files`, which outlives it. Time, threads and scheduling are those of RocksDB's
// default environment. Its information log is not written.
//
// `log_bytes` other than 0: a log is made with that size, of zeros, so that a sync of it is one write; a removed one is
// cleared in the background and used again. RocksDB has logs of constant size, too (recycle_log_file_num), but 7.8.3
// refuses them in all but one mode of recovery, and in that one its recovery of an old log does not terminate.
[[nodiscard]] std::unique_ptr<rocksdb::Env> rocksdb_environment(block_files& files, std::uint64_t log_bytes = 0);

// The same over two drives: `fast` has the files whose names begin with `fast_folder`, the log among them. It outlives
// the environment, too.
[[nodiscard]] std::unique_ptr<rocksdb::Env> rocksdb_environment(block_files& files, block_files& fast,
                                                                std::string fast_folder, std::uint64_t log_bytes = 0);

}  // namespace pmlab::stores
