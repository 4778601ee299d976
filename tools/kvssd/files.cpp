#include "tools/kvssd/files.hpp"
#include "tools/kvssd/engine.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/file_holders.hpp>
#include <pmlab/blocks/file.hpp>
#include <pmlab/media/pmem.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <span>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pmlab::kvssd {
namespace {

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

descriptor opened(const std::string& path) {
  descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.is_open())
    throw error("cannot read " + path + ": " + std::strerror(errno), "check the path and its permissions");
  return file;
}

// Bytes read; 0: the end.
std::size_t read_at(int file, off_t at, std::span<char> out, const std::string& path) {
  for (;;) {
    const ssize_t count = ::pread(file, out.data(), out.size(), at);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR)
      throw error("cannot read " + path + ": " + std::strerror(errno), "name a file or a block device");
  }
}

}  // namespace

bool device_files::has_drive() const { return is_there(drive); }
bool device_files::has_memory() const { return is_there(memory) || media::pmem::has_lost_its_name(memory); }

bool device_files::has_whole_memory() const {
  media::pmem of(memory);
  return engine::is_complete(of);
}
bool device_files::fits(const std::string& other) const try {
  if (!is_there(other) || !drive_has_header()) return false;
  media::pmem of(other);
  blocks::any_device flash(std::in_place_type<blocks::file>, drive, blocks::file_options{});
  return engine::are_of_one_moment(of, flash);
} catch (const error&) {
  return false;  // it is not a pool, or not complete
}
bool device_files::drive_was_made_only() const {
  blocks::any_device flash(std::in_place_type<blocks::file>, drive, blocks::file_options{});
  return engine::was_made_only(flash);
}

bool device_files::drive_is_block_device() const {
  struct stat status {};
  return ::stat(drive.c_str(), &status) == 0 && S_ISBLK(status.st_mode);
}

bool device_files::drive_has_header() const {
  constexpr auto magic = stores::detail::kv_ssd::flash_header::right_magic;
  std::array<char, magic.size()> first{};
  return read_at(opened(drive).get(), 0, first, drive) == first.size() && first == magic;
}

bool device_files::drive_is_blank() const {
  const descriptor file = opened(drive);
  std::vector<char> piece(std::size_t{1} << 20);
  // Holes have no data. A file system that does not know them has data all over.
  for (off_t at = 0; (at = ::lseek(file.get(), at, SEEK_DATA)) >= 0;) {
    const std::size_t count = read_at(file.get(), at, piece, drive);
    if (count == 0) return true;
    if (std::any_of(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(count), [](char c) { return c != 0; }))
      return false;
    at += static_cast<off_t>(count);
  }
  return errno == ENXIO;
}

void device_files::name_new_ones(bool with_drive) const {
  try {
    rename_durably(new_memory, memory);                // (R1)
    if (with_drive) rename_durably(new_drive, drive);  // (R2)
  } catch (...) {
    // A renaming that failed may have given the name all the same.
    if (!with_drive || !has_drive()) ::unlink(memory.c_str());
    throw;
  }
}

bool device_files::finish() const {
  if (!is_there(folder)) return false;
  try {
    return making(*this).has_ended_rebuilding();
  } catch (const error&) {
    if (!has_drive() || !has_memory()) throw;  // otherwise another one removes the folder just now
    return false;
  }
}

void device_files::remove_memory() const {
  if (::unlink(memory.c_str()) != 0 && errno != ENOENT)
    throw error("cannot remove " + memory + ": " + std::strerror(errno), "check its permissions");
  sync_folder_of(memory);
}

making::making(const device_files& at) : at_(at) {
  constexpr int most_tries = 100;
  for (int tries = 0;; ++tries) {
    const bool has_folder = ::mkdir(at.folder.c_str(), 0700) == 0 || errno == EEXIST;
    if (has_folder) lock_ = descriptor(::open(at.lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock_.is_open() && (!has_folder || errno != ENOENT || tries == most_tries)) {
      const std::string why = std::strerror(errno);
      ::rmdir(at.folder.c_str());
      throw error("cannot make " + at.lock + ": " + why,
                  "check that the folder of " + at.drive + " is there and writable");
    }
    if (!lock_.is_open()) continue;
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
      throw error(
          "the device " + at.drive + " is being made, " + holders_as_text(lock_.get(), "by another process or thread"),
          "wait until it is done; a forked process keeps the lock of its parent, also of one that was killed: end it");
    // One that was done may have removed the file that is locked now.
    struct stat locked {
    }, named{};
    if (::fstat(lock_.get(), &locked) == 0 && ::stat(at.lock.c_str(), &named) == 0 && locked.st_ino == named.st_ino)
      break;
    lock_ = descriptor();
  }
  try {
    name_complete_ones();
  } catch (...) {
    give_back_folder();  // the files stay
    throw;
  }
  remove_files();
}

void making::name_complete_ones() {
  if (is_there(at_.new_drive) && !is_there(at_.new_memory) && is_there(at_.memory) && !is_there(at_.drive))
    rename_durably(at_.new_drive, at_.drive);  // (R2) after a crash
  if (!at_.has_drive()) return;
  if (at_.fits(at_.rebuilt)) {
    rename_durably(at_.rebuilt, at_.memory);
    has_ended_rebuilding_ = true;
  }
  if (!at_.has_memory() && at_.fits(at_.new_memory)) rename_durably(at_.new_memory, at_.memory);
}

making::~making() {
  remove_files();
  give_back_folder();
}

void making::give_back_folder() const noexcept {
  ::unlink(at_.lock.c_str());
  ::rmdir(at_.folder.c_str());
}

void making::remove_files() const noexcept {
  try {
    for (const std::string& file :
         {at_.new_drive, at_.new_memory, media::unfinished_name(at_.new_memory), media::unfinished_name(at_.rebuilt)})
      ::unlink(file.c_str());
    // If its renaming failed, it stays: the drive has no other memory.
    if (!at_.fits(at_.rebuilt)) ::unlink(at_.rebuilt.c_str());
  } catch (const std::exception&) {
    // The next making removes them.
  }
}

}  // namespace pmlab::kvssd
