#include "bench/stores/peers/rocksdb_files.hpp"

#include <rocksdb/file_system.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::stores {
namespace {

using rocksdb::FileOptions;
using rocksdb::IODebugContext;
using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

using file_handle = std::shared_ptr<block_files::file>;

// The status of an action that throws pmlab::error.
template <class Action>
[[nodiscard]] IOStatus status_of(Action&& action) {
  try {
    return action();
  } catch (const block_files::no_room& full) {
    return IOStatus::NoSpace(full.what());
  } catch (const error& failed) {
    return IOStatus::IOError(failed.what());
  }
}

[[nodiscard]] IOStatus no_such_file(const std::string& name) { return IOStatus::PathNotFound(name); }

[[nodiscard]] blocks::stream stream_of(const std::string& name) {
  if (name.ends_with(".log")) return blocks::stream::log;
  if (name.ends_with(".sst") || name.ends_with(".blob")) return blocks::stream::data;
  return blocks::stream::manifest;
}

[[nodiscard]] std::span<std::byte> bytes_of(char* start, std::size_t bytes) {
  return {reinterpret_cast<std::byte*>(start), bytes};
}

class random_access_file final : public rocksdb::FSRandomAccessFile {
 public:
  random_access_file(block_files& files, file_handle file) : files_(files), file_(std::move(file)) {}
  IOStatus Read(std::uint64_t offset, std::size_t n, const IOOptions& /*options*/, Slice* result, char* scratch,
                IODebugContext* /*debug*/) const override {
    return status_of([&] {
      *result = Slice(scratch, files_.read(*file_, offset, bytes_of(scratch, n)));
      return IOStatus::OK();
    });
  }

 private:
  block_files& files_;
  file_handle file_;
};

class sequential_file final : public rocksdb::FSSequentialFile {
 public:
  sequential_file(block_files& files, file_handle file) : files_(files), file_(std::move(file)) {}
  IOStatus Read(std::size_t n, const IOOptions& /*options*/, Slice* result, char* scratch,
                IODebugContext* /*debug*/) override {
    return status_of([&] {
      const std::size_t got = files_.read(*file_, position_, bytes_of(scratch, n));
      position_ += got;
      *result = Slice(scratch, got);
      return IOStatus::OK();
    });
  }
  IOStatus Skip(std::uint64_t n) override {
    position_ += n;
    return IOStatus::OK();
  }

 private:
  block_files& files_;
  file_handle file_;
  std::uint64_t position_ = 0;
};

class writable_file final : public rocksdb::FSWritableFile {
 public:
  writable_file(block_files& files, file_handle file) : files_(files), file_(std::move(file)) {}
  using FSWritableFile::Append;
  IOStatus Append(const Slice& data, const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return status_of([&] {
      files_.append(*file_, std::as_bytes(std::span(data.data(), data.size())));
      return IOStatus::OK();
    });
  }
  IOStatus Truncate(std::uint64_t size, const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return status_of([&] {
      files_.truncate(*file_, size);
      return IOStatus::OK();
    });
  }
  IOStatus Close(const IOOptions& /*options*/, IODebugContext* /*debug*/) override { return IOStatus::OK(); }
  IOStatus Flush(const IOOptions& /*options*/, IODebugContext* /*debug*/) override { return IOStatus::OK(); }
  IOStatus Sync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return status_of([&] {
      files_.sync(*file_);
      return IOStatus::OK();
    });
  }
  bool IsSyncThreadSafe() const override { return true; }
  std::uint64_t GetFileSize(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return files_.size(*file_);
  }

 private:
  block_files& files_;
  file_handle file_;
};

class directory final : public rocksdb::FSDirectory {
 public:
  explicit directory(block_files& files) : files_(files) {}
  IOStatus Fsync(const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return status_of([&] {
      files_.sync_names();
      return IOStatus::OK();
    });
  }

 private:
  block_files& files_;
};

class no_logger final : public rocksdb::Logger {
 public:
  using Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
};

class held_lock final : public rocksdb::FileLock {};

// Folders are part of a name. Every operation that names a file is overridden: none reaches the machine's files.
class file_system final : public rocksdb::FileSystemWrapper {
 public:
  // `fast`, if there is one, has the files whose names begin with `fast_folder`.
  file_system(block_files& files, block_files* fast, std::string fast_folder, std::uint64_t log_bytes)
      : FileSystemWrapper(rocksdb::FileSystem::Default()),
        files_(files),
        fast_(fast),
        fast_folder_(std::move(fast_folder)),
        log_bytes_(log_bytes) {
    remove_spares(files_);
    if (fast_ != nullptr) remove_spares(*fast_);
  }

  const char* Name() const override { return "pmlab block files"; }

  IOStatus NewSequentialFile(const std::string& name, const FileOptions& /*options*/,
                             std::unique_ptr<rocksdb::FSSequentialFile>* result, IODebugContext* /*debug*/) override {
    return opened(name, [&](file_handle f) { *result = std::make_unique<sequential_file>(of(name), std::move(f)); });
  }
  IOStatus NewRandomAccessFile(const std::string& name, const FileOptions& /*options*/,
                               std::unique_ptr<rocksdb::FSRandomAccessFile>* result,
                               IODebugContext* /*debug*/) override {
    return opened(name, [&](file_handle f) { *result = std::make_unique<random_access_file>(of(name), std::move(f)); });
  }
  IOStatus NewWritableFile(const std::string& name, const FileOptions& /*options*/,
                           std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* /*debug*/) override {
    return status_of([&] {
      *result = std::make_unique<writable_file>(of(name),
                                                is_kept(name) ? new_log(name) : of(name).create(name, stream_of(name)));
      return IOStatus::OK();
    });
  }
  IOStatus ReopenWritableFile(const std::string& name, const FileOptions& options,
                              std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) override {
    if (!of(name).exists(name)) return NewWritableFile(name, options, result, debug);
    return opened(name, [&](file_handle f) { *result = std::make_unique<writable_file>(of(name), std::move(f)); });
  }
  IOStatus ReuseWritableFile(const std::string& name, const std::string& old_name, const FileOptions& options,
                             std::unique_ptr<rocksdb::FSWritableFile>* result, IODebugContext* debug) override {
    of(old_name).remove(old_name);
    return NewWritableFile(name, options, result, debug);
  }
  IOStatus NewRandomRWFile(const std::string& /*name*/, const FileOptions& /*options*/,
                           std::unique_ptr<rocksdb::FSRandomRWFile>* /*result*/, IODebugContext* /*debug*/) override {
    return IOStatus::NotSupported("files that are overwritten");
  }
  IOStatus NewMemoryMappedFileBuffer(const std::string& /*name*/,
                                     std::unique_ptr<rocksdb::MemoryMappedFileBuffer>* /*result*/) override {
    return IOStatus::NotSupported("mapped files");
  }
  IOStatus NewDirectory(const std::string& name, const IOOptions& /*options*/,
                        std::unique_ptr<rocksdb::FSDirectory>* result, IODebugContext* /*debug*/) override {
    *result = std::make_unique<directory>(of(name));
    return IOStatus::OK();
  }
  IOStatus FileExists(const std::string& name, const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return of(name).exists(name) ? IOStatus::OK() : IOStatus::NotFound();
  }
  IOStatus GetChildren(const std::string& folder, const IOOptions& /*options*/, std::vector<std::string>* result,
                       IODebugContext* /*debug*/) override {
    *result = of(folder.ends_with('/') ? folder : folder + '/').children(folder);
    return IOStatus::OK();
  }
  IOStatus GetChildrenFileAttributes(const std::string& folder, const IOOptions& options,
                                     std::vector<rocksdb::FileAttributes>* result, IODebugContext* debug) override {
    std::vector<std::string> children;
    static_cast<void>(GetChildren(folder, options, &children, debug));
    result->clear();
    for (const std::string& child : children) {
      const std::string name = (folder.ends_with('/') ? folder : folder + '/') + child;
      const file_handle f = of(name).open(name);
      result->push_back({child, f == nullptr ? 0 : of(name).size(*f)});
    }
    return IOStatus::OK();
  }
  IOStatus DeleteFile(const std::string& name, const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return status_of([&] {
      const bool there = is_kept(name) ? drop_log(name) : of(name).remove(name);
      return there ? IOStatus::OK() : no_such_file(name);
    });
  }
  IOStatus Truncate(const std::string& name, std::size_t size, const IOOptions& /*options*/,
                    IODebugContext* /*debug*/) override {
    return opened(name, [&](const file_handle& f) { of(name).truncate(*f, size); });
  }
  IOStatus CreateDir(const std::string& /*name*/, const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return IOStatus::OK();
  }
  IOStatus CreateDirIfMissing(const std::string& /*name*/, const IOOptions& /*options*/,
                              IODebugContext* /*debug*/) override {
    return IOStatus::OK();
  }
  IOStatus DeleteDir(const std::string& /*name*/, const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    return IOStatus::OK();
  }
  IOStatus GetFileSize(const std::string& name, const IOOptions& /*options*/, std::uint64_t* size,
                       IODebugContext* /*debug*/) override {
    return opened(name, [&](const file_handle& f) { *size = of(name).size(*f); });
  }
  IOStatus GetFileModificationTime(const std::string& name, const IOOptions& /*options*/, std::uint64_t* time,
                                   IODebugContext* /*debug*/) override {
    return opened(name, [&](const file_handle& /*f*/) { *time = 0; });
  }
  IOStatus GetAbsolutePath(const std::string& path, const IOOptions& /*options*/, std::string* result,
                           IODebugContext* /*debug*/) override {
    *result = path;
    return IOStatus::OK();
  }
  IOStatus RenameFile(const std::string& from, const std::string& to, const IOOptions& /*options*/,
                      IODebugContext* /*debug*/) override {
    return of(from).rename(from, to) ? IOStatus::OK() : no_such_file(from);
  }
  IOStatus LinkFile(const std::string& /*from*/, const std::string& /*to*/, const IOOptions& /*options*/,
                    IODebugContext* /*debug*/) override {
    return IOStatus::NotSupported("links");
  }
  IOStatus NumFileLinks(const std::string& /*name*/, const IOOptions& /*options*/, std::uint64_t* /*count*/,
                        IODebugContext* /*debug*/) override {
    return IOStatus::NotSupported("links");
  }
  IOStatus AreFilesSame(const std::string& first, const std::string& second, const IOOptions& /*options*/, bool* result,
                        IODebugContext* /*debug*/) override {
    *result = first == second;
    return IOStatus::OK();
  }
  // One process has the device.
  IOStatus LockFile(const std::string& /*name*/, const IOOptions& /*options*/, rocksdb::FileLock** lock,
                    IODebugContext* /*debug*/) override {
    *lock = new held_lock;
    return IOStatus::OK();
  }
  IOStatus UnlockFile(rocksdb::FileLock* lock, const IOOptions& /*options*/, IODebugContext* /*debug*/) override {
    delete lock;
    return IOStatus::OK();
  }
  IOStatus GetTestDirectory(const IOOptions& /*options*/, std::string* path, IODebugContext* /*debug*/) override {
    *path = "/test";
    return IOStatus::OK();
  }
  IOStatus NewLogger(const std::string& /*name*/, const IOOptions& /*options*/,
                     std::shared_ptr<rocksdb::Logger>* result, IODebugContext* /*debug*/) override {
    *result = std::make_shared<no_logger>();
    return IOStatus::OK();
  }
  IOStatus GetFreeSpace(const std::string& path, const IOOptions& /*options*/, std::uint64_t* bytes,
                        IODebugContext* /*debug*/) override {
    *bytes = of(path).free_bytes();
    return IOStatus::OK();
  }
  IOStatus IsDirectory(const std::string& path, const IOOptions& /*options*/, bool* result,
                       IODebugContext* /*debug*/) override {
    *result = !of(path).exists(path);
    return IOStatus::OK();
  }

 private:
  // A file keeps its place: RocksDB renames within a folder.
  [[nodiscard]] block_files& of(const std::string& name) const {
    return fast_ != nullptr && name.starts_with(fast_folder_) ? *fast_ : files_;
  }
  // A crash may have cut off their clearing.
  static void remove_spares(block_files& files) {
    for (const std::string& name : files.names())
      if (name.starts_with(spare)) files.remove(name);
  }
  template <class Action>
  [[nodiscard]] IOStatus opened(const std::string& name, Action&& action) {
    return status_of([&] {
      file_handle f = of(name).open(name);
      if (f == nullptr) return no_such_file(name);
      action(std::move(f));
      return IOStatus::OK();
    });
  }

  // True: the file is a log that is made with its size, and kept for later ones.
  [[nodiscard]] bool is_kept(const std::string& name) const {
    return log_bytes_ != 0 && stream_of(name) == blocks::stream::log;
  }
  [[nodiscard]] file_handle new_log(const std::string& name) {
    std::string kept;
    {
      const std::scoped_lock lock(mutex_);
      if (!spares_.empty()) kept = std::exchange(spares_.back(), {});
      if (!kept.empty()) spares_.pop_back();
    }
    if (kept.empty()) return of(name).create_log(name, log_bytes_);
    of(name).rename(kept, name);
    return of(name).open(name);
  }
  [[nodiscard]] bool drop_log(const std::string& name) {
    std::string kept;
    {
      const std::scoped_lock lock(mutex_);
      if (spares_.size() + clearing_ >= most_spares) return of(name).remove(name);
      ++clearing_;
      kept = spare + std::to_string(++dropped_);
    }
    const bool there = of(name).clear_log(name, kept);
    const std::scoped_lock lock(mutex_);
    --clearing_;
    if (there) spares_.push_back(kept);
    return there;
  }

  static constexpr const char* spare = "spare ";  // no folder of RocksDB's has it
  static constexpr std::size_t most_spares = 4;

  block_files& files_;
  block_files* fast_;
  std::string fast_folder_;
  std::uint64_t log_bytes_;
  std::mutex mutex_;  // guards all below
  std::vector<std::string> spares_;
  std::size_t clearing_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace

std::unique_ptr<rocksdb::Env> rocksdb_environment(block_files& files, std::uint64_t log_bytes) {
  return rocksdb::NewCompositeEnv(std::make_shared<file_system>(files, nullptr, std::string(), log_bytes));
}

std::unique_ptr<rocksdb::Env> rocksdb_environment(block_files& files, block_files& fast, std::string fast_folder,
                                                  std::uint64_t log_bytes) {
  return rocksdb::NewCompositeEnv(std::make_shared<file_system>(files, &fast, std::move(fast_folder), log_bytes));
}

}  // namespace pmlab::stores
