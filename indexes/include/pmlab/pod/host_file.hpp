// A file that processes share as hosts: its head, who of them lives, and whether one has it alone.
//
//   0       4096
//   | head | memory | what stands for the device of memory that is not coherent (stale_lines.hpp) |
#pragma once

#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/file_limit.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/base/remedy.hpp>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pmlab::pod {

// Who else may have the file open.
enum class sharing : std::uint8_t { with_others, alone };

// What a file is made with, for as long as it is there.
struct file_shape {
  std::uint64_t bytes = 0;           // the memory has
  std::uint64_t coherent_bytes = 0;  // its first ones, which are coherent between hosts
  bool has_stale_copies = false;     // made for stale_lines
};

// The file, and locks of the kernel on bytes behind its end: one for each host, and one that is exclusive where a host
// has the file alone. The kernel drops the locks of a process that ends, in whatever way, after all of its threads have
// ended: so a host that lives is never held for dead, and a dead one stores nothing more.
//
// REQUIRES: this process makes no child by fork while it has the file open: the child would hold the same locks.
// Thread safety: every operation from any number of threads.
class host_file {
 public:
  static constexpr std::uint64_t page_bytes = 4096;        // each part of the file is made of pages
  static constexpr std::uint64_t head_bytes = page_bytes;  // the memory begins behind them

  // Opens an existing file, which has beyond(its shape) bytes behind the memory. Throws pmlab::error: it cannot be
  // opened, is another kind of file or damaged, or others have it open in another way.
  host_file(std::string path, sharing how, bool has_stale_copies, std::uint64_t (*beyond)(const file_shape&))
      : path_(std::move(path)), how_(how) {
    file_ = descriptor(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
    if (!file_.is_open()) throw refused("cannot open " + path_, errno, "check the path and its permissions");
    read_head(has_stale_copies, beyond);
    if (lock(gate, how_ == sharing::alone ? F_WRLCK : F_RDLCK)) return;
    if (errno != EAGAIN && errno != EACCES)
      throw refused("cannot lock " + path_, errno, "use a file system that has locks of files");
    if (how_ == sharing::alone)
      throw error(path_ + " is open on other hosts", "close it there, or open it with others");
    throw error(path_ + " is open by one host alone", "wait until that one has closed it");
  }

  // Makes a file that only fill(its path of now) has seen, and gives it its name then; killed before, it leaves that
  // file. The memory, and beyond(shape) bytes behind it, are zero before.
  // Throws pmlab::error: the name exists, there is no space, or the shape is none; and what `fill` throws.
  template <class Fill>
  static void make(const std::string& path, const file_shape& shape, std::uint64_t (*beyond)(const file_shape&),
                   Fill&& fill) {
    if (shape.bytes % page_bytes != 0 || shape.coherent_bytes % page_bytes != 0)
      throw error("a memory of " + std::to_string(shape.bytes) + " bytes, of which " +
                      std::to_string(shape.coherent_bytes) + " are coherent, is not made of pages",
                  "give multiples of 4096");
    if (shape.coherent_bytes > shape.bytes)
      throw error("of a memory of " + std::to_string(shape.bytes) + " bytes, " + std::to_string(shape.coherent_bytes) +
                      " cannot be coherent",
                  "give a smaller part, or all");
    const std::uint64_t bytes = head_bytes + shape.bytes + beyond(shape);
    check_file_limit(path, bytes, ", or make it smaller");
    // No other one has this name: that of a process which was killed in here stays.
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    const std::string unnamed = path + ".new-" + std::to_string(::getpid()) + "-" + std::to_string(now);
    const descriptor made(::open(unnamed.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!made.is_open()) throw refused("cannot make " + unnamed, errno, "check the folder and its permissions");
    try {
      int failure = ::posix_fallocate(made.get(), 0, static_cast<off_t>(bytes));
      const head first = head_of(shape);
      if (failure == 0 && ::pwrite(made.get(), &first, sizeof first, 0) != sizeof first) failure = errno;
      if (failure != 0)
        throw refused("cannot give " + path + " " + std::to_string(bytes) + " bytes", failure,
                      "make room on its device, or make it smaller");
      fill(unnamed);
      sync_file(made.get(), unnamed);
      if (!rename_durably_to_new(unnamed, path)) throw error(path + " exists", "remove it, or take another name");
    } catch (const error& e) {
      ::unlink(unnamed.c_str());
      // The user knows the name that it was to have.
      std::string text = e.what();
      for (std::size_t at = 0; (at = text.find(unnamed, at)) != std::string::npos; at += path.size())
        text.replace(at, unnamed.size(), path);
      throw error(text, "");
    } catch (...) {
      ::unlink(unnamed.c_str());
      throw;
    }
  }

  // As the constructor was given it.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // As the head has it.
  [[nodiscard]] const file_shape& shape() const noexcept { return shape_; }
  [[nodiscard]] int number() const noexcept { return file_.get(); }  // its descriptor
  // Whether this process has the gate alone.
  [[nodiscard]] bool is_alone() const noexcept { return how_ == sharing::alone; }

  // Takes the lock of this number, for as long as the process lives or until `release_host`. False: another has it.
  [[nodiscard]] bool take_host(unsigned host) const noexcept { return lock(first_host + host, F_WRLCK); }
  // Gives the lock of this number back.
  void release_host(unsigned host) const noexcept { lock(first_host + host, F_UNLCK); }
  // Whether another process has the number. A call of the kernel.
  [[nodiscard]] bool is_taken(unsigned host) const noexcept {
    struct flock asked = range_of(first_host + host, F_WRLCK);
    return ::fcntl(file_.get(), F_OFD_GETLK, &asked) != 0 || asked.l_type != F_UNLCK;
  }

 private:
  static constexpr off_t gate = off_t{1} << 61;
  static constexpr off_t first_host = gate + 1;

  struct head {
    std::uint64_t magic;
    std::uint64_t version;
    std::uint64_t bytes;
    std::uint64_t coherent_bytes;
    std::uint64_t has_stale_copies;
    std::uint64_t check;  // a hash, whose input are those above
    friend bool operator==(const head&, const head&) = default;
  };
  static constexpr std::uint64_t magic = 0x2e646f7062616c6dULL;  // "mlabpod."
  static constexpr std::uint64_t version = 1;

  [[nodiscard]] static head head_of(const file_shape& s) noexcept {
    const std::uint64_t check =
        mix_bits(mix_bits(mix_bits(magic ^ s.bytes) + s.coherent_bytes) ^ (s.has_stale_copies ? 1 : 0));
    return {magic, version, s.bytes, s.coherent_bytes, s.has_stale_copies ? 1U : 0U, check};
  }
  [[nodiscard]] static error refused(const std::string& what, int number, const char* remedy) {
    return error(what + ": " + std::strerror(number), remedy_for(number, remedy));
  }

  void read_head(bool has_stale_copies, std::uint64_t (*beyond)(const file_shape&)) {
    head found{};
    const ssize_t got = ::pread(file_.get(), &found, sizeof found, 0);
    if (got < 0) throw refused("cannot read " + path_, errno, "check its device");
    if (got != sizeof found || found.magic != magic)
      throw error(path_ + " is no memory of several hosts", "name a file that `pod::make_shared_file` has made");
    if (found.version != version)
      throw error(path_ + " has version " + std::to_string(found.version) + ", and this program reads version " +
                      std::to_string(version),
                  "open it with the release of pmlab that made it");
    shape_ = {found.bytes, found.coherent_bytes, found.has_stale_copies != 0};
    if (found != head_of(shape_)) throw error("the head of " + path_ + " is damaged", "take a copy that is whole");
    if (shape_.has_stale_copies != has_stale_copies)
      throw error(path_ + (has_stale_copies ? " is not made" : " is made") + " for hosts with stale copies",
                  "open it as what it was made for");
    struct stat facts {};
    if (::fstat(file_.get(), &facts) != 0 ||
        static_cast<std::uint64_t>(facts.st_size) < head_bytes + shape_.bytes + beyond(shape_))
      throw error(path_ + " was cut short", "take a copy that is whole");
  }

  [[nodiscard]] static struct flock range_of(off_t byte, int kind) noexcept {
    struct flock range {};
    range.l_type = static_cast<short>(kind);
    range.l_whence = SEEK_SET;
    range.l_start = byte;
    range.l_len = 1;
    return range;
  }
  bool lock(off_t byte, int kind) const noexcept {
    struct flock range = range_of(byte, kind);
    return ::fcntl(file_.get(), F_OFD_SETLK, &range) == 0;
  }

  std::string path_;
  sharing how_;
  descriptor file_;
  file_shape shape_;
};

// A part of a file that is mapped, and shared with other processes.
class shared_mapping {
 public:
  // `at`: an address where something else is mapped, which gives way and is unmapped with it; nullptr: anywhere.
  // Throws pmlab::error: the kernel refuses.
  shared_mapping(const host_file& file, std::uint64_t from, std::uint64_t bytes, void* at = nullptr)
      : bytes_(at == nullptr ? bytes : 0) {
    if (bytes == 0) return;
    const auto map = [&](int kind) {
      return ::mmap(at, bytes, PROT_READ | PROT_WRITE, kind | (at == nullptr ? 0 : MAP_FIXED), file.number(),
                    static_cast<off_t>(from));
    };
    // Accepted only where the kernel promises that lines are durable when they are flushed.
    begin_ = map(MAP_SHARED_VALIDATE | MAP_SYNC);
    is_durable_ = begin_ != MAP_FAILED;
    if (!is_durable_) begin_ = map(MAP_SHARED);
    if (begin_ == MAP_FAILED)
      throw error("cannot map " + file.path() + ": " + std::strerror(errno),
                  remedy_for(errno, "check the limit of address space (ulimit -v)"));
  }
  shared_mapping(const shared_mapping&) = delete;
  shared_mapping& operator=(const shared_mapping&) = delete;
  ~shared_mapping() {
    if (bytes_ != 0) ::munmap(begin_, bytes_);
  }

  // Its first byte; nullptr: it has none.
  [[nodiscard]] char* begin() const noexcept { return static_cast<char*>(begin_); }
  // Flushed and fenced stores survive a power failure.
  [[nodiscard]] bool is_durable() const noexcept { return is_durable_; }

 private:
  void* begin_ = nullptr;
  std::uint64_t bytes_;  // to unmap
  bool is_durable_ = false;
};

}  // namespace pmlab::pod
