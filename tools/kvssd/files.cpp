#include "tools/kvssd/files.hpp"
#include "tools/kvssd/engine.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/file_holders.hpp>
#include <pmlab/base/remedy.hpp>
#include <pmlab/blocks/file.hpp>
#include <pmlab/media/pmem.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pmlab::kvssd {
namespace {

[[noreturn]] void throw_unreachable(const std::string& path, int why) {
  std::error_code is_no_link;
  const std::string target = std::filesystem::read_symlink(path, is_no_link).string();
  const bool is_forbidden = why == EACCES || why == EPERM;
  throw error("cannot reach " + path + (target.empty() ? "" : " (links to " + target + ")") + ": " + std::strerror(why),
              std::string(is_forbidden     ? "check the permissions of the folders that lead to it"
                          : target.empty() ? remedy_for(why, "check the path, and the drive of its folder")
                                           : "mount the file system that it leads to, or mend the link") +
                  "; its data may be there");
}

// What has the name itself, which may be a link. std::nullopt: nothing has it.
std::optional<struct stat> named(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0) return status;
  if (errno == ENOENT) return std::nullopt;
  throw_unreachable(path, errno);
}

bool is_there(const std::string& path) {
  const auto status = named(path);
  struct stat behind {};
  if (status && S_ISLNK(status->st_mode) && ::stat(path.c_str(), &behind) != 0) throw_unreachable(path, errno);
  return status.has_value();
}

// The file behind the links of a path; the path itself if it is none.
std::string behind_links(const std::string& path) {
  const auto status = named(path);
  if (!status || !S_ISLNK(status->st_mode)) return path;
  const std::unique_ptr<char, decltype(&std::free)> file(::realpath(path.c_str(), nullptr), &std::free);
  if (file == nullptr) throw_unreachable(path, errno);
  return file.get();
}

// The names on the way from a path through links; the last one is no link, and may be free.
std::vector<std::string> names_from(const std::string& path) {
  constexpr std::size_t most_links = 40;  // the limit of the kernel
  std::vector<std::string> names{path};
  for (;;) {
    const auto status = named(names.back());
    if (!status || !S_ISLNK(status->st_mode)) return names;
    if (names.size() > most_links)
      throw error("cannot reach " + path + ": too many symbolic links",
                  "check where it leads; links that lead to each other have no file");
    std::error_code failed;
    const std::filesystem::path target = std::filesystem::read_symlink(names.back(), failed);
    if (failed) throw_unreachable(names.back(), failed.value());
    // An absolute target replaces it.
    names.push_back((std::filesystem::path(names.back()).parent_path() / target).string());
  }
}

descriptor opened(const std::string& path) {
  descriptor file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file.is_open())
    throw error("cannot read " + path + ": " + std::strerror(errno),
                remedy_for(errno, "check the path and its permissions"));
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

bool has_header(const std::string& drive) {
  constexpr auto magic = stores::detail::kv_ssd::flash_header::right_magic;
  std::array<char, magic.size()> first{};
  return read_at(opened(drive).get(), 0, first, drive) == first.size() && first == magic;
}

}  // namespace

device_files::device_files(const std::string& path)
    : drive(path),
      memory(behind_links(path + ".memory")),
      folder(path + ".unfinished"),
      memory_folder(memory == path + ".memory" ? folder : memory + ".making"),
      lock(folder + "/lock"),
      new_drive(folder + "/drive"),
      new_memory(memory_folder + "/memory"),
      rebuilt(memory_folder + "/rebuilt") {}

device_files device_files::named_by(const std::string& path) {
  const std::vector<std::string> names = names_from(path);
  std::vector<device_files> all;
  std::exception_ptr unreachable;
  for (auto name = names.rbegin(); name != names.rend(); ++name) try {
      device_files at(*name);
      if (at.has_memory()) all.push_back(std::move(at));
    } catch (const error&) {
      if (!unreachable) unreachable = std::current_exception();
    }
  const auto last = named(names.back());
  if (all.empty() && !unreachable) return device_files(last && S_ISBLK(last->st_mode) ? names.front() : names.back());
  auto own = all.begin();
  if (all.size() > 1 || unreachable) {
    own = std::find_if(all.begin(), all.end(), [](const device_files& at) { return at.surely_fits(at.memory); });
    if (own == all.end() && unreachable) std::rethrow_exception(unreachable);
    if (own == all.end()) own = all.begin();
  }
  for (auto other = all.begin(); other != all.end(); ++other)
    if (other != own) own->other_memories.push_back(other->memory);
  return *own;
}

bool device_files::has_drive() const { return is_there(drive); }
bool device_files::has_memory() const {
  if (is_there(memory)) return true;
  const std::string nameless = media::unfinished_name(memory);
  if (!is_there(nameless)) return false;
  static_cast<void>(opened(nameless));  // a memory that may not be read is not lost
  return media::pmem::has_lost_its_name(memory);
}

bool device_files::has_whole_memory() const {
  media::pmem of(memory);
  return engine::is_complete(of);
}
bool device_files::fit(const std::string& of_memory, const std::string& of_drive) {
  if (!is_there(of_memory) || !has_header(of_drive)) return false;
  media::pmem memory(of_memory);
  blocks::any_device flash(std::in_place_type<blocks::file>, of_drive, blocks::file_options{});
  return engine::are_of_one_moment(memory, flash);
}
bool device_files::surely_fits(const std::string& other) const try { return fits(other); } catch (const error&) {
  return false;
}
bool device_files::drive_was_made_only() const {
  blocks::any_device flash(std::in_place_type<blocks::file>, drive, blocks::file_options{});
  return engine::was_made_only(flash);
}

bool device_files::drive_is_block_device() const {
  struct stat status {};
  return ::stat(drive.c_str(), &status) == 0 && S_ISBLK(status.st_mode);
}

bool device_files::drive_is_file_or_block_device() const {
  struct stat status {};
  return ::stat(drive.c_str(), &status) == 0 && (S_ISREG(status.st_mode) || S_ISBLK(status.st_mode));
}

bool device_files::drive_has_header() const { return has_header(drive); }

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

void device_files::check_that_memory_is_a_file() const {
  const auto status = named(memory);
  if (!status || S_ISREG(status->st_mode)) return;
  throw error("the memory " + memory + " of " + drive + " is no file, which another one could replace",
              "remove the link " + drive + ".memory, or let it lead to a copy in a file");
}

void device_files::remove_memory() const {
  check_that_memory_is_a_file();
  if (::unlink(memory.c_str()) != 0 && errno != ENOENT)
    throw error("cannot remove " + memory + ": " + std::strerror(errno), remedy_for(errno, "check its permissions"));
  sync_folder_of(memory);
}

making::making(const device_files& at) : at_(at) {
  constexpr int most_tries = 100;
  for (int tries = 0;; ++tries) {
    const bool has_folder = ::mkdir(at.folder.c_str(), 0700) == 0 || errno == EEXIST;
    if (has_folder) lock_ = descriptor(::open(at.lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!lock_.is_open() && (!has_folder || errno != ENOENT || tries == most_tries)) {
      const int why = errno;
      ::rmdir(at.folder.c_str());
      throw error("cannot make " + at.lock + ": " + std::strerror(why),
                  why == EROFS ? "mount the file system for writing, or name a file on another one"
                               : "check that the folder of " + at.drive + " is there and writable");
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
    if (::mkdir(at.memory_folder.c_str(), 0700) != 0 && errno != EEXIST)
      throw error("cannot make " + at.memory_folder + ": " + std::strerror(errno),
                  "check that the folder of " + at.memory + " is writable");
    name_complete_ones();
  } catch (...) {
    give_back_folder();  // the files stay
    throw;
  }
  remove_files();
}

void making::name_complete_ones() {
  // Or the memory is one that was restored from a copy, and waits for its own drive.
  if (is_there(at_.new_drive) && !is_there(at_.new_memory) && is_there(at_.memory) && !is_there(at_.drive) &&
      device_files::fit(at_.memory, at_.new_drive))
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
  if (at_.memory_folder != at_.folder) ::rmdir(at_.memory_folder.c_str());
  ::unlink(at_.lock.c_str());
  ::rmdir(at_.folder.c_str());
}

void making::remove_files() const noexcept {
  try {
    for (const std::string& file :
         {at_.new_drive, at_.new_memory, media::unfinished_name(at_.new_memory), media::unfinished_name(at_.rebuilt)})
      ::unlink(file.c_str());
    // If its renaming failed, or it cannot be judged, it stays: the drive may have no other memory.
    if (!at_.fits(at_.rebuilt)) ::unlink(at_.rebuilt.c_str());
  } catch (const std::exception&) {
    // The next making removes them.
  }
}

}  // namespace pmlab::kvssd
