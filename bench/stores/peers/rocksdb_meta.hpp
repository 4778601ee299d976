// A peer of the chunk store: the algorithm of BlueStore, with RocksDB for its metadata.
//
// Data is redirected on write, in units of 4 KB or of the device's blocks, if these are larger. The places of an
// object's blocks are rows of RocksDB, 32 blocks to a row. A write is done when its data is durable and then its rows
// are: the log of RocksDB is synced once for all writes whose data became durable meanwhile, of all threads. A small
// overwrite may be deferred instead: its data is a row, and is written to its place later. All places are cached in
// DRAM, free space is rebuilt when the store is opened. There are no checksums of data, as in the chunk store; or, as
// BlueStore has them, one of 4 bytes for each block, in its row, which each read compares.
//
// What is written when:
//   (B1) the data, to free units of the data device      (B2) the rows that name them, in one synced batch
//   (B3) the replaced units are free
//   (D1) the row with a deferred write's data, synced    (D2) the data in its place
//   (D3) the removal of the row, with a later batch
//   (B1) < (B2): no row names data that is not there.    (B2) < (B3): no row names units that have a new owner.
//   (D1) < (D2): an interrupted write in place is done again. (D2) < (D3): else it would be lost.
#pragma once

#include <pmlab/blocks/any_device.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace pmlab::stores {

struct rocksdb_meta_options {
  std::uint64_t volume_bytes = 0;    // bytes of the one volume, a multiple of a block of the data device
  std::uint64_t deferred_bytes = 0;  // overwrites of at most so many bytes are deferred
  bool checksums = false;            // data have checksums
  bool format = true;                // makes an empty store; else opens the one that is there
  unsigned threads = 2;              // threads of RocksDB in the background
};

struct rocksdb_meta_stats {
  std::uint64_t redirected = 0;           // writes
  std::uint64_t deferred = 0;             // writes
  std::uint64_t commits = 0;              // batches of rows
  std::uint64_t free_bytes = 0;           // free bytes of the data device
  std::uint64_t longest_free_extent = 0;  // bytes
  std::uint64_t meta_bytes = 0;           // bytes of RocksDB's files
};

// Thread safety: queues as those of devices; `stats` from any thread.
class rocksdb_meta {
  class store;

 public:
  // On two devices that outlive it: of data, and of RocksDB's files. Throws pmlab::error: the data device is too small
  // for the volume, there is no store to open, RocksDB fails.
  rocksdb_meta(blocks::any_device& data, blocks::any_device& meta, const rocksdb_meta_options& options);
  rocksdb_meta(const rocksdb_meta&) = delete;
  rocksdb_meta& operator=(const rocksdb_meta&) = delete;
  // What was not reaped is lost or not, as by a crash.
  ~rocksdb_meta();

  // Belongs to one thread. Offsets and lengths are multiples of a block, data is aligned as for the device. A write is
  // durable when it is reaped; a completion has no_space_on_device, or the device's error, or device_failed after
  // RocksDB has failed, or bad_message: data is not that of its checksum. Writes under way that overlap take effect in
  // any order.
  class queue {
   public:
    // At most `depth` operations under way. `of` outlives it.
    queue(rocksdb_meta& of, unsigned depth);
    queue(const queue&) = delete;
    queue& operator=(const queue&) = delete;
    ~queue();
    // False: `depth` operations are under way. Throw pmlab::error: unaligned, beyond the end.
    [[nodiscard]] bool write(std::uint64_t offset, std::span<const std::byte> data, std::uint64_t tag);
    [[nodiscard]] bool read(std::uint64_t offset, std::span<std::byte> data, std::uint64_t tag);
    // Blocks that read as zeros, and need no space.
    [[nodiscard]] bool discard(std::uint64_t offset, std::uint64_t bytes, std::uint64_t tag);
    // Waits until at least so many are done, or all of those under way.
    std::size_t reap(std::span<blocks::completion> completions, std::size_t at_least);
    [[nodiscard]] std::size_t in_flight() const;

   private:
    class state;
    std::unique_ptr<state> state_;
  };

  [[nodiscard]] rocksdb_meta_stats stats() const;
  [[nodiscard]] std::uint64_t volume_bytes() const;
  [[nodiscard]] std::uint32_t block_bytes() const;

 private:
  std::unique_ptr<store> store_;
};

}  // namespace pmlab::stores
