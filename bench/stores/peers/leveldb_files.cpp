#include "bench/stores/peers/leveldb_files.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::stores {
namespace {

using leveldb::Slice;
using leveldb::Status;

using file_handle = std::shared_ptr<block_files::file>;

constexpr std::size_t read_ahead_bytes = std::size_t{256} << 10;
// The status of an action that throws pmlab::error.
template <class Action>
[[nodiscard]] Status status_of(Action&& action) {
  try {
    return action();
  } catch (const error& failed) {
    return Status::IOError(failed.what());
  }
}

[[nodiscard]] Status no_such_file(const std::string& name) { return Status::NotFound(name); }

[[nodiscard]] blocks::stream stream_of(const std::string& name) {
  if (name.ends_with(".log")) return blocks::stream::log;
  if (name.ends_with(".ldb") || name.ends_with(".sst")) return blocks::stream::data;
  return blocks::stream::manifest;
}

[[nodiscard]] std::span<std::byte> bytes_of(char* start, std::size_t bytes) {
  return {reinterpret_cast<std::byte*>(start), bytes};
}

class random_access_file final : public leveldb::RandomAccessFile {
 public:
  random_access_file(block_files& files, file_handle file) : files_(files), file_(std::move(file)) {}
  Status Read(std::uint64_t offset, std::size_t n, Slice* result, char* scratch) const override {
    return status_of([&] {
      const std::unique_lock lock(mutex_, std::try_to_lock);
      const bool goes_on = lock.owns_lock() && offset == end_;
      if (lock.owns_lock()) end_ = offset + n;
      std::size_t got = 0;
      if (goes_on && n < read_ahead_bytes)
        got = read_from_ahead(offset, n, scratch);
      else
        got = files_.read(*file_, offset, bytes_of(scratch, n));
      *result = Slice(scratch, got);
      return Status::OK();
    });
  }

 private:
  // With mutex_. Tables do not change.
  std::size_t read_from_ahead(std::uint64_t offset, std::size_t n, char* scratch) const {
    if (offset < ahead_at_ || offset + n > ahead_at_ + ahead_.size()) {
      ahead_.resize(read_ahead_bytes);
      ahead_at_ = offset;
      ahead_.resize(files_.read(*file_, offset, ahead_));
    }
    const std::size_t got = std::min(n, ahead_.size() - static_cast<std::size_t>(offset - ahead_at_));
    std::memcpy(scratch, ahead_.data() + (offset - ahead_at_), got);
    return got;
  }

  block_files& files_;
  file_handle file_;
  mutable std::mutex mutex_;  // guards all below
  mutable std::uint64_t end_ = 1;
  mutable std::uint64_t ahead_at_ = 0;
  mutable std::vector<std::byte> ahead_;
};

class sequential_file final : public leveldb::SequentialFile {
 public:
  sequential_file(block_files& files, file_handle file) : files_(files), file_(std::move(file)) {}
  Status Read(std::size_t n, Slice* result, char* scratch) override {
    return status_of([&] {
      const std::size_t got = files_.read(*file_, position_, bytes_of(scratch, n));
      position_ += got;
      *result = Slice(scratch, got);
      return Status::OK();
    });
  }
  Status Skip(std::uint64_t n) override {
    position_ += n;
    return Status::OK();
  }

 private:
  block_files& files_;
  file_handle file_;
  std::uint64_t position_ = 0;
};

class writable_file final : public leveldb::WritableFile {
 public:
  writable_file(block_files& files, file_handle file) : files_(files), file_(std::move(file)) {}
  Status Append(const Slice& data) override {
    return status_of([&] {
      files_.append(*file_, std::as_bytes(std::span(data.data(), data.size())));
      return Status::OK();
    });
  }
  Status Close() override { return Status::OK(); }
  Status Flush() override { return Status::OK(); }
  Status Sync() override {
    return status_of([&] {
      files_.sync(*file_);
      return Status::OK();
    });
  }

 private:
  block_files& files_;
  file_handle file_;
};

class no_logger final : public leveldb::Logger {
 public:
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
};

class held_lock final : public leveldb::FileLock {};

// Folders are part of a name. Every operation that names a file is overridden: none reaches the machine's files.
class environment final : public leveldb::EnvWrapper {
 public:
  explicit environment(block_files& files) : EnvWrapper(leveldb::Env::Default()), files_(files) {}

  Status NewSequentialFile(const std::string& name, leveldb::SequentialFile** result) override {
    return opened(name, [&](file_handle f) { *result = new sequential_file(files_, std::move(f)); });
  }
  Status NewRandomAccessFile(const std::string& name, leveldb::RandomAccessFile** result) override {
    return opened(name, [&](file_handle f) { *result = new random_access_file(files_, std::move(f)); });
  }
  Status NewWritableFile(const std::string& name, leveldb::WritableFile** result) override {
    return status_of([&] {
      *result = new writable_file(files_, files_.create(name, stream_of(name)));
      return Status::OK();
    });
  }
  Status NewAppendableFile(const std::string& name, leveldb::WritableFile** result) override {
    if (!files_.exists(name)) return NewWritableFile(name, result);
    return opened(name, [&](file_handle f) { *result = new writable_file(files_, std::move(f)); });
  }
  bool FileExists(const std::string& name) override { return files_.exists(name); }
  Status GetChildren(const std::string& folder, std::vector<std::string>* result) override {
    *result = files_.children(folder);
    return Status::OK();
  }
  Status RemoveFile(const std::string& name) override {
    return status_of([&] { return files_.remove(name) ? Status::OK() : no_such_file(name); });
  }
  Status CreateDir(const std::string& /*name*/) override { return Status::OK(); }
  Status RemoveDir(const std::string& /*name*/) override { return Status::OK(); }
  Status GetFileSize(const std::string& name, std::uint64_t* size) override {
    return opened(name, [&](const file_handle& f) { *size = files_.size(*f); });
  }
  Status RenameFile(const std::string& from, const std::string& to) override {
    return files_.rename(from, to) ? Status::OK() : no_such_file(from);
  }
  // One process has the device.
  Status LockFile(const std::string& /*name*/, leveldb::FileLock** lock) override {
    *lock = new held_lock;
    return Status::OK();
  }
  Status UnlockFile(leveldb::FileLock* lock) override {
    delete lock;
    return Status::OK();
  }
  Status GetTestDirectory(std::string* path) override {
    *path = "/test";
    return Status::OK();
  }
  Status NewLogger(const std::string& /*name*/, leveldb::Logger** result) override {
    *result = new no_logger;
    return Status::OK();
  }

 private:
  template <class Action>
  [[nodiscard]] Status opened(const std::string& name, Action&& action) {
    return status_of([&] {
      file_handle f = files_.open(name);
      if (f == nullptr) return no_such_file(name);
      action(std::move(f));
      return Status::OK();
    });
  }

  block_files& files_;
};

}  // namespace

std::unique_ptr<leveldb::Env> leveldb_environment(block_files& files) { return std::make_unique<environment>(files); }

}  // namespace pmlab::stores
