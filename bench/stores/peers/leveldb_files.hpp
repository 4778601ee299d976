// LevelDB on a block device: its environment over block_files.
//
// As rocksdb_files.hpp: counted by stream, emulated, without a page cache. A read that goes on where the last one of
// the same file ended reads ahead, as a page cache would: LevelDB's compactions read block by block.
#pragma once

#include "bench/stores/peers/block_files.hpp"

#include <leveldb/env.h>

#include <memory>

namespace pmlab::stores {

// An environment whose files are `files`, which outlives it. Time, threads and scheduling are those of LevelDB's
// default environment. Its information log is not written.
[[nodiscard]] std::unique_ptr<leveldb::Env> leveldb_environment(block_files& files);

}  // namespace pmlab::stores
