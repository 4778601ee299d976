// A new file for a block device: its blocks allocated and zero, its name durable.
#pragma once

#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/remedy.hpp>
#include <pmlab/blocks/buffer.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <unistd.h>

namespace pmlab::blocks {

namespace detail {

// Takes the space from the file system. No error where it cannot: the zeros take it then.
inline void allocate(int file, std::uint64_t bytes, const std::string& path) {
  while (::fallocate(file, 0, 0, static_cast<off_t>(bytes)) != 0) {
    if (errno == EINTR) continue;
    if (errno == EOPNOTSUPP) return;
    throw error("cannot take " + std::to_string(bytes) + " bytes for " + path + ": " + std::strerror(errno),
                "choose a smaller size, or a drive with more space");
  }
}

// fallocate alone leaves extents that are marked as unwritten. The first write of each would change metadata, which the
// file system's journal then writes at the next flush.
inline void write_zeros(int file, std::uint64_t bytes, const std::string& path) {
  constexpr std::uint64_t piece = std::uint64_t{1} << 20;
  const buffer zeros(static_cast<std::size_t>(std::min(bytes, piece)));
  for (std::uint64_t done = 0; done < bytes;) {
    const std::size_t next = static_cast<std::size_t>(std::min<std::uint64_t>(zeros.size(), bytes - done));
    const ssize_t written = ::pwrite(file, zeros.data(), next, static_cast<off_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0)
      throw error("cannot write zeros to " + path + ": " + std::strerror(written < 0 ? errno : EIO),
                  "check the drive and its space");
    done += static_cast<std::uint64_t>(written);
  }
}

}  // namespace detail

// Makes a file of `bytes` (a multiple of 4096) that blocks::file can open: allocated, written with zeros, synced with
// its folder. Takes as long as writing it once. Throws pmlab::error, and leaves no file, if `path` exists, there is no
// space, or the drive fails.
inline void create_file(const std::string& path, std::uint64_t bytes) {
  if (bytes == 0 || bytes % 4096 != 0)
    throw error("a file of " + std::to_string(bytes) + " bytes for a block device", "choose a multiple of 4096 bytes");
  const descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.is_open())
    throw error("cannot make " + path + ": " + std::strerror(errno),
                errno == EEXIST ? "choose another name, or remove that file"
                                : remedy_for(errno, "check the path and its permissions"));
  try {
    detail::allocate(file.get(), bytes, path);
    // Around the page cache where that is possible: the zeros are not read soon.
    const descriptor direct(::open(path.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC));
    detail::write_zeros(direct.is_open() ? direct.get() : file.get(), bytes, path);
    // (F1) < (F2): a name that survives leads to a file whose metadata does not change any more (rule B6).
    sync_file(file.get(), path);  // (F1)
    sync_folder_of(path);         // (F2)
  } catch (...) {
    ::unlink(path.c_str());
    throw;
  }
}

}  // namespace pmlab::blocks
