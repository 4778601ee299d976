// A copy of a file in memory, for who may read the file and not write to it.
#pragma once

#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>

#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pmlab::media {

// A file without a name, which is gone with its last descriptor and mapping, and has the content of `file`: its holes,
// too. `path` names the file in the error. Needs memory for the bytes that are no holes. Throws pmlab::error: no
// memory, the device fails, or the kernel has no such files. REQUIRES: the file does not change meanwhile.
[[nodiscard]] inline descriptor copy_in_memory(int file, const std::string& path) {
  const auto refuse = [&] {
    throw error("cannot copy " + path + ", which can only be read, into memory: " + std::strerror(errno),
                "copy it to where this user can write");
  };
  descriptor copy(::memfd_create("pmlab-copy", MFD_CLOEXEC));
  struct stat status {};
  if (!copy.is_open() || ::fstat(file, &status) != 0 || ::ftruncate(copy.get(), status.st_size) != 0) refuse();
  for (off_t at = 0; at < status.st_size;) {
    at = ::lseek(file, at, SEEK_DATA);
    if (at < 0 && errno == ENXIO) break;  // holes alone follow
    const off_t end = at < 0 ? -1 : ::lseek(file, at, SEEK_HOLE);
    if (end < 0 || ::lseek(copy.get(), at, SEEK_SET) < 0) refuse();
    while (at < end) {
      const ssize_t sent = ::sendfile(copy.get(), file, &at, static_cast<std::size_t>(end - at));
      if (sent == 0) errno = EIO;  // it was truncated
      if (sent <= 0 && errno != EINTR) refuse();
    }
  }
  return copy;
}

}  // namespace pmlab::media
