// Names of files that survive a power failure: fsync of a file and of the folder that names it.
//
// A file is durable when two things are: its content and size (fsync of the file), and its name (fsync of its folder).
// A file system may lose either one without the other, and a rename that was not synced may or may not have happened.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/remedy.hpp>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace pmlab {

// An open file descriptor, closed with its owner. Thread safety: as for an int.
class descriptor {
 public:
  // Takes ownership of `file`; -1: none.
  explicit descriptor(int file = -1) noexcept : file_(file) {}
  descriptor(descriptor&& other) noexcept : file_(std::exchange(other.file_, -1)) {}  // `other` has none then
  descriptor& operator=(descriptor&& other) noexcept {  // `other` gets the descriptor that this one had
    std::swap(file_, other.file_);
    return *this;
  }
  ~descriptor() {
    if (file_ >= 0) ::close(file_);
  }

  // The descriptor; -1: none.
  [[nodiscard]] int get() const noexcept { return file_; }
  // True if there is one.
  [[nodiscard]] bool is_open() const noexcept { return file_ >= 0; }
  // Gives the descriptor to the caller.
  [[nodiscard]] int release() noexcept { return std::exchange(file_, -1); }

 private:
  int file_;
};

// The folder that holds the name `path`: "." for a plain name.
[[nodiscard]] inline std::string folder_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Makes content and size of `file` durable. `path` names it in the error. Throws pmlab::error: the device failed, or is
// full. No error where the file has nothing to sync (a pipe, a terminal, a file system without fsync).
inline void sync_file(int file, const std::string& path) {
  if (::fsync(file) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP) return;
  throw error("cannot write " + path + " to its device: " + std::strerror(errno),
              remedy_for(errno, "check the device and its space"));
}

// Makes the names durable that were made, changed or removed in the folder of `path`. Throws pmlab::error.
inline void sync_folder_of(const std::string& path) {
  const std::string folder = folder_of(path);
  const descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.is_open()) return sync_file(opened.get(), folder);
  // A folder that may be written to, and not read. The file system as a whole can be synced through any of its files.
  const descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open() || ::syncfs(file.get()) != 0)
    throw error("cannot sync folder " + folder + ": " + std::strerror(errno),
                remedy_for(errno, "check its permissions"));
}

// Gives the file `from` the name `to`, in the same folder, in place of any file that has it. The content of `from` must
// be durable. After a power failure `to` is the old file or the new one; on return it is the new one for good. Throws
// pmlab::error.
inline void rename_durably(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0)
    throw error("cannot give " + to + " its name: " + std::strerror(errno), "check its folder");
  sync_folder_of(to);
}

// As rename_durably, but replaces nothing. False: `to` exists, and nothing was changed. After a power failure on a file
// system that knows no such rename, the file may have both names.
[[nodiscard]] inline bool rename_durably_to_new(const std::string& from, const std::string& to) {
  int failure = ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0 ? 0 : errno;
  if (failure == EINVAL || failure == ENOSYS) {
    failure = ::link(from.c_str(), to.c_str()) == 0 ? 0 : errno;
    if (failure == 0) ::unlink(from.c_str());
  }
  if (failure == EEXIST) return false;
  if (failure != 0) throw error("cannot give " + to + " its name: " + std::strerror(failure), "check its folder");
  sync_folder_of(to);
  return true;
}

}  // namespace pmlab
