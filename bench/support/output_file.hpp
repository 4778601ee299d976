// A file that is replaced atomically: after a power failure, a kill or a full device its name leads to the old content
// or to the new one, never to a part.
#pragma once

#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/remedy.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pmlab {

// Whether `file` is what standard output leads to.
inline bool is_standard_output(const struct stat& file) noexcept {
  struct stat out {};
  return ::fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == file.st_dev && out.st_ino == file.st_ino;
}

// Where the bytes are written, by the kind of `path`:
//
//   nothing, or a regular file   a new file in the same folder, which gets the name in finish(); a file that is no
//                                text (a pool, a drive, an archive) is not replaced
//   a symbolic link              as above, for the file that the link leads to; the link stays
//   a device, a FIFO             written directly: it cannot be replaced, and its input cannot be undone; a FIFO
//                                without a reader is waited for, with a line on standard error
//   "-"                          standard output, as is any path to the file that standard output is
//
// Without finish() the old file stays and the new one is removed. Thread safety: one thread at a time.
class output_file {
 public:
  // Opens the file. A new one has `mode`, less the process's umask; one that replaces an old one has that one's mode.
  // Throws pmlab::error: no such folder, no permission, a folder, a file that is no text.
  explicit output_file(std::string path, mode_t mode = 0666) : path_(std::move(path)) {
    struct stat old {};
    const bool exists = path_ != "-" && ::stat(path_.c_str(), &old) == 0;
    if (path_ != "-" && !exists && errno == ENAMETOOLONG) fail(errno);
    to_stdout_ = path_ == "-" || (exists && is_standard_output(old));
    if (to_stdout_) {
      file_ = stdout;
    } else if (exists && !S_ISREG(old.st_mode)) {
      take(S_ISFIFO(old.st_mode) ? open_fifo() : ::open(path_.c_str(), as_it_is));
    } else {
      if (exists) refuse_what_is_no_text();
      target_ = target_of(path_);
      take(open_new(mode));
      if (exists) take_over(old);
    }
  }
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;
  ~output_file() {
    // What standard output did not take is an error that was thrown: the end of the program does not report it again.
    if (file_ != nullptr && to_stdout_) std::clearerr(file_);
    if (file_ != nullptr && !to_stdout_) std::fclose(file_);
    if (!unfinished_.empty()) std::remove(unfinished_.c_str());
  }

  // Where to write, until finish(), which sees failures of all that was written.
  [[nodiscard]] std::FILE* stream() const noexcept { return file_; }
  // The path of the new file until it has its name; empty: there is none.
  [[nodiscard]] const std::string& unfinished() const noexcept { return unfinished_; }
  // How messages name it.
  [[nodiscard]] std::string name() const { return to_stdout_ ? "standard output" : path_; }

  // Appends `text`. Throws pmlab::error: the device is full.
  void write(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) fail(errno);
  }

  // Writes what is still in memory. Throws pmlab::error: the device is full.
  void flush() {
    errno = 0;
    // The number of a failure before this one is lost: then it is EIO.
    if (std::fflush(file_) != 0 || std::ferror(file_) != 0) fail(errno != 0 ? errno : EIO);
  }

  // Makes the bytes durable and renames the file. REQUIRES: called once. Throws pmlab::error: the old file is
  // unchanged, unless only the folder could not be synced.
  void finish() {
    flush();
    if (to_stdout_) {
      file_ = nullptr;
      return;
    }
    const bool replaces = !unfinished_.empty();
    // (F1) < (F2): a name that survives leads to bytes that did.
    if (replaces) sync_file(::fileno(file_), path_);  // (F1)
    // Some file systems report a full device here only.
    if (std::fclose(std::exchange(file_, nullptr)) != 0) fail(errno);
    if (!replaces) return;
    rename_durably(unfinished_, target_);  // (F2)
    unfinished_.clear();
  }

 private:
  static constexpr int as_it_is = O_WRONLY | O_NOCTTY | O_CLOEXEC;

  // The descriptor of a FIFO, once it has a reader, as other programs wait for one; below 0 and errno: it cannot be
  // opened.
  [[nodiscard]] int open_fifo() const {
    const int file = ::open(path_.c_str(), as_it_is | O_NONBLOCK);
    if (file >= 0) {
      ::fcntl(file, F_SETFL, O_WRONLY);  // writes wait for the reader, and do not fail
      return file;
    }
    if (errno != ENXIO) return file;
    std::fprintf(stderr, "pmlab: waiting for a reader of %s\n", path_.c_str());
    return ::open(path_.c_str(), as_it_is);
  }

  // All files that are written here are texts. The header of a pool has zero bytes, as those of most other forms do. A
  // file that cannot be read may be replaced: nothing is known of it.
  void refuse_what_is_no_text() const {
    std::array<char, 4096> start{};
    const descriptor file(::open(path_.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC));
    const ssize_t count = file.is_open() ? ::read(file.get(), start.data(), start.size()) : 0;
    if (count > 0 && std::memchr(start.data(), 0, static_cast<std::size_t>(count)) != nullptr)
      throw error("cannot write " + name() + ": the file that is there is no text",
                  "nothing was overwritten: name another path, or remove it yourself");
  }

  [[noreturn]] void fail(int number) const {
    throw error((to_stdout_ ? "cannot write to " : "cannot write ") + name() + ": " + std::strerror(number),
                remedy_for(number, "check the path, its permissions and its space"));
  }

  // Owner and mode of the file that is replaced, as far as this process may set them.
  void take_over(const struct stat& old) const noexcept {
    const bool owned = ::fchown(::fileno(file_), old.st_uid, old.st_gid) == 0;
    // A change of owner clears bits of the mode: hence this last. Bits of another owner are not this process's to give.
    constexpr mode_t permissions = 0777;
    ::fchmod(::fileno(file_), owned ? old.st_mode : old.st_mode & permissions);
  }

  void take(int file) {
    file_ = file < 0 ? nullptr : ::fdopen(file, "w");
    if (file_ != nullptr) return;
    const int why = errno;
    if (file >= 0) ::close(file);
    if (!unfinished_.empty()) std::remove(unfinished_.c_str());
    fail(why);
  }

  // Where the links of `path` lead in the end, be there a file or not.
  [[nodiscard]] std::string target_of(std::string path) const {
    constexpr int most_links = 40;  // as the kernel follows
    for (int i = 0; i < most_links; ++i) {
      std::error_code failure;
      const std::filesystem::path next = std::filesystem::read_symlink(path, failure);
      if (failure) return path;
      path = next.is_absolute() ? next.string() : (std::filesystem::path(folder_of(path)) / next).string();
    }
    fail(ELOOP);
  }

  // The folder of the target and the start of its name, which may be as long as the file system allows.
  [[nodiscard]] static std::string start_of(const std::string& target) {
    constexpr std::size_t most = 200;
    const std::size_t name = target.rfind('/') + 1;
    return target.substr(0, std::min(target.size(), name + most));
  }

  // The descriptor of a new file beside the target; below 0 and errno: there is none.
  [[nodiscard]] int open_new(mode_t mode) {
    for (int i = 0;; ++i) {
      const std::string name =
          start_of(target_) + ".unfinished." + std::to_string(::getpid()) + "." + std::to_string(i);
      const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
      if (file < 0 && errno == EEXIST) continue;
      if (file >= 0) unfinished_ = name;
      return file;
    }
  }

  std::string path_;        // as it was given
  std::string target_;      // the name to replace; empty: nothing is replaced
  std::string unfinished_;  // the new file until it has that name
  std::FILE* file_ = nullptr;
  bool to_stdout_ = false;
};

}  // namespace pmlab
