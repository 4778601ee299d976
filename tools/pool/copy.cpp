// A private mapping of a pool for inspection.
#include "tools/pool/copy.hpp"
#include "tools/pool/child.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/remedy.hpp>
#include <pmlab/media/pool_header.hpp>
#include <pmlab/media/probe_pool.hpp>
#include "bench/support/machine.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pmlab::pool {
namespace {

constexpr std::string_view layout_family = "pmlab-pool-";

// libpmemobj holds this lock while a pool is open.
bool is_open_elsewhere(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool locked = ::flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(file);
  return locked;
}

// A pool that can only be read is copied into memory. Without this, the kernel would kill the child process for it.
void refuse_copy_without_memory(const std::string& path) {
  struct stat status {};
  if (::access(path.c_str(), W_OK) == 0 || ::stat(path.c_str(), &status) != 0) return;
  constexpr std::uint64_t block = 512;  // unit of st_blocks on every file system
  const std::uint64_t bytes = static_cast<std::uint64_t>(status.st_blocks) * block;
  if (const std::uint64_t free = bench::available_memory(); bytes > free)
    throw error(fmt::format("pool {} can only be read, and memory has no place for a copy of it: {} MiB of {}", path,
                            free >> 20, bytes >> 20),
                "copy it to where this user can write");
}

void refuse_other_layouts(const std::string& path, const std::string& layout) {
  if (layout == media::pmem::pool_layout) return;
  if (layout.starts_with(layout_family))
    throw error(fmt::format("pool {} has layout {}, and this build reads {}", path, layout, media::pmem::pool_layout),
                "use the release of pmlab that wrote it: its `pmlab pool dump`, then `pmlab pool load` of this one");
  throw error(
      fmt::format("{} is a pool of something else: its layout is '{}', not {}", path, layout, media::pmem::pool_layout),
      "name a pool that pmlab made");
}

}  // namespace

void refuse_what_is_no_pool(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw error(fmt::format("there is no pool at {}: {}", path, std::strerror(errno)),
                remedy_for(errno, "check the path"));
  if (S_ISCHR(status.st_mode)) return;
  if (!S_ISREG(status.st_mode)) throw error(path + " is not a pool: it is no file", "name a pool file");
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    throw error(fmt::format("cannot read {}: {}", path, std::strerror(errno)),
                remedy_for(errno, "check its permissions"));
  const std::optional<std::string> layout = media::layout_of_pool(file);
  ::close(file);
  if (!layout)
    throw error(path + " is not a pool: it does not begin like one",
                "name another file; if it was a pool, its header is lost, and with it the way to all the rest");
  if (is_open_elsewhere(path))
    throw error(fmt::format("pool {} is open in another process", path), "close it there first");
  refuse_other_layouts(path, *layout);
}

std::string look_at(const std::string& path, const std::string& doing, patience each,
                    const std::function<std::string(media::pmem&)>& look) {
  refuse_what_is_no_pool(path);
  refuse_copy_without_memory(path);
  return in_child(doing, each, [&] {
    media::map_pools_privately(path);
    media::pmem pool(path, {.huge_pages = false, .reserve_space = false, .bypass_msync = true});
    return look(pool);
  });
}

}  // namespace pmlab::pool
