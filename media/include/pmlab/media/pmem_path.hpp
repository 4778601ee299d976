// The kind of memory behind a pool's path, and the failures that it survives.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace pmlab::media {

// Where the bytes of a pool's path are.
enum class backing : std::uint8_t {
  device_dax,  // a device file of persistent memory
  fs_dax,      // a file on a file system that maps persistent memory directly
  tmpfs,       // DRAM with a file's interface
  page_cache,  // an ordinary file: the kernel keeps it in DRAM and writes it out when it likes
};

// The failures that a pool there survives, as text.
[[nodiscard]] constexpr std::string_view survives(backing b) noexcept {
  switch (b) {
    case backing::device_dax:
    case backing::fs_dax: return "power failure";
    case backing::tmpfs: return "death of the process, not of the machine (tmpfs is DRAM)";
    case backing::page_cache: return "death of the process, not of the machine (ordinary file in the page cache)";
  }
  return "?";
}

// `file`: an open descriptor of the pool.
[[nodiscard]] inline backing backing_of(int file) noexcept {
  struct stat status {};
  if (fstat(file, &status) == 0 && S_ISCHR(status.st_mode)) return backing::device_dax;
  constexpr std::int64_t tmpfs_magic = 0x01021994;
  constexpr std::int64_t ramfs_magic = 0x858458f6;
  struct statfs fs {};
  if (fstatfs(file, &fs) == 0 && (fs.f_type == tmpfs_magic || fs.f_type == ramfs_magic)) return backing::tmpfs;
  // MAP_SYNC is granted only where a store reaches persistent memory without the page cache in between.
  constexpr std::size_t page = 4096;
  void* const mapped = mmap(nullptr, page, PROT_READ, MAP_SHARED_VALIDATE | MAP_SYNC, file, 0);
  if (mapped == MAP_FAILED) return backing::page_cache;
  munmap(mapped, page);
  return backing::fs_dax;
}

// Bytes of the file or device behind a status; 0: unknown.
[[nodiscard]] inline std::uint64_t capacity_of(const struct stat& status) {
  if (!S_ISCHR(status.st_mode)) return static_cast<std::uint64_t>(status.st_size);
  std::uint64_t bytes = 0;
  std::ifstream("/sys/dev/char/" + std::to_string(major(status.st_rdev)) + ":" + std::to_string(minor(status.st_rdev)) +
                "/size") >>
      bytes;
  return bytes;
}

// Bytes of the file or device at `path`; 0: unknown.
[[nodiscard]] inline std::uint64_t capacity_of(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? capacity_of(status) : 0;
}

// Bytes of the file or device behind the descriptor; 0: unknown.
[[nodiscard]] inline std::uint64_t capacity_of(int file) {
  struct stat status {};
  return fstat(file, &status) == 0 ? capacity_of(status) : 0;
}

// A name that leads to the file behind the descriptor, whatever `path` leads to by now. Where there is no /proc:
// `path`.
[[nodiscard]] inline std::string name_of_descriptor(int file, const std::string& path) {
  std::string name = "/proc/self/fd/" + std::to_string(file);
  return ::access(name.c_str(), F_OK) == 0 ? name : path;
}

// True if `path` leads to the file behind the descriptor.
[[nodiscard]] inline bool leads_to(const std::string& path, int file) noexcept {
  struct stat named {};
  struct stat opened {};
  return stat(path.c_str(), &named) == 0 && fstat(file, &opened) == 0 && named.st_dev == opened.st_dev &&
         named.st_ino == opened.st_ino;
}

}  // namespace pmlab::media
