// The peer rocksdb_meta as a subject: BlueStore's algorithm.
//
// RocksDB's files are in the medium that chunk_store has its records in (container pmem), as BlueStore had persistent
// memory for them in the UStore paper; or in a region of the drive itself (container blocks).
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include "bench/stores/subjects.hpp"
#include "bench/stores/volume_subject.hpp"

#include <cstdint>
#include <memory>
#include <string_view>

namespace pmlab::store_bench {

// Two stores: one redirects all writes, and data has no checksums; one, nearer to BlueStore, has checksums of data and
// defers overwrites of a block.
// The latency of a deferred write is that of RocksDB's log, to which its data goes, too.
inline constexpr std::string_view deferring_rocksdb_meta = "rocksdb_meta_deferred";
[[nodiscard]] inline bool is_rocksdb_meta(std::string_view store) {
  return store == "rocksdb_meta" || store == deferring_rocksdb_meta;
}

// The space of RocksDB's files.
[[nodiscard]] std::uint64_t rocksdb_meta_bytes(const store_setup& setup);

// On the medium of the setup. An emulated medium takes the time of stores; reads and writes of files are its only
// accesses.
[[nodiscard]] std::unique_ptr<volume_subject> make_rocksdb_meta(const store_setup& setup, blocks::any_device& device);

}  // namespace pmlab::store_bench
