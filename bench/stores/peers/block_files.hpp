// Files on a block device, for peers that write files: names, extents, and a directory that survives a crash.
//
// The promises of an ordinary file system, and no more: `sync` makes a file's data, size and name durable, and all
// changes of names that were made before it. Data that was not synced may be lost or not after a crash. There is no
// page cache: reads go to the device, as with direct I/O; a file's last bytes wait in memory until a whole write unit
// is there or the file is synced.
//
//   block 0 .. 2C-1   the directory, twice: C blocks each, written in turn; the one with the higher sequence is valid
//   block 2C ..       extents of files
//
// What is written when (each step durable before the next):
//   (W1) the data of the file
//   (W2) the directory, in the place of the older one, with sequence and checksum
//   (W3) extents of removed files are free again
//   (W1) < (W2): a size in the directory never covers data that is not there.
//   (W2) < (W3): the older directory refers to the extents of a file that was removed since.
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include <pmlab/blocks/buffer.hpp>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace pmlab::stores {

// Thread safety: all operations from any thread. One writer per file at a time. Each throws pmlab::error if the device
// fails a request; no_room if there is no space, and nothing is changed then.
class block_files {
 public:
  struct no_room : error {
    using error::error;
  };

  class file;

  // Opens the files on `device`, which outlives this. `format`: makes an empty directory first; all files are lost.
  // Throws pmlab::error if there is no valid directory, or the device is too small.
  block_files(blocks::any_device& device, bool format);
  block_files(const block_files&) = delete;
  block_files& operator=(const block_files&) = delete;
  ~block_files();

  // A new empty file, in place of any file of that name; its requests belong to stream `of`.
  [[nodiscard]] std::shared_ptr<file> create(const std::string& name, blocks::stream of);
  // A new file of `bytes` zeros that appends overwrite from its beginning: a log whose size does not change, so that a
  // sync writes its data and nothing else. Its reader finds the end by its records.
  [[nodiscard]] std::shared_ptr<file> create_log(const std::string& name, std::uint64_t bytes);
  // Renames a log, and makes it as new. It is not written meanwhile. False: there is no file `from`.
  bool clear_log(const std::string& from, const std::string& to);
  // nullptr: there is no such file.
  [[nodiscard]] std::shared_ptr<file> open(const std::string& name);
  [[nodiscard]] bool exists(const std::string& name) const;
  // False: there is no such file.
  bool remove(const std::string& name);
  // In place of any file `to`. False: there is no file `from`.
  bool rename(const std::string& from, const std::string& to);
  [[nodiscard]] std::vector<std::string> names() const;
  // The files and folders in a folder, sorted: folders are parts of names, up to a '/'.
  [[nodiscard]] std::vector<std::string> children(std::string folder) const;

  // Appends; durable after sync.
  void append(file& to, std::span<const std::byte> data);
  // Reads up to data.size() bytes from byte `offset`; returns how many there are.
  [[nodiscard]] std::size_t read(file& from, std::uint64_t offset, std::span<std::byte> data);
  void truncate(file& which, std::uint64_t bytes);
  [[nodiscard]] std::uint64_t size(const file& of) const;
  // Makes the file durable, and all changes of names so far.
  void sync(file& which);
  // Makes all changes of names so far durable.
  void sync_names();
  // Bytes in extents that no file uses.
  [[nodiscard]] std::uint64_t free_bytes() const;
  // Bytes in extents of files.
  [[nodiscard]] std::uint64_t used_bytes() const;

 private:
  class queue_pool;
  using version = std::uint64_t;

  void load();
  [[nodiscard]] bool load_place(unsigned place);
  void parse(std::span<const std::byte> text);
  void commit(version at_least);
  [[nodiscard]] std::vector<std::byte> directory_text() const;
  void allocate(file& to, std::uint64_t blocks_needed);
  void release(file& of);
  void begin_again(file& log);
  void append_zeros(file& to, std::uint64_t bytes);
  void mark_used(std::uint64_t first, std::uint64_t count);
  void write_out(file& to, bool all);
  [[nodiscard]] std::size_t read_blocks(const file& from, std::uint64_t offset, std::span<std::byte> data);

  blocks::any_device& device_;
  blocks::geometry shape_;
  std::uint32_t directory_blocks_;
  std::unique_ptr<queue_pool> queues_;

  mutable std::mutex mutex_;  // guards all below, and the extents and sizes of files
  std::map<std::string, std::shared_ptr<file>> files_;
  std::map<std::uint64_t, std::uint64_t> free_;                 // first block -> blocks
  std::vector<std::pair<std::uint64_t, std::uint64_t>> freed_;  // since the last commit began
  version changed_ = 0;                                         // counts changes of the directory

  std::mutex commit_mutex_;  // guards all below; taken before mutex_
  version committed_ = 0;
  std::uint64_t sequence_ = 0;
};

}  // namespace pmlab::stores
