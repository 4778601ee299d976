// How large a working set this machine has room for.
#include "microbench/memory/room.hpp"
#include "bench/support/machine.hpp"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <system_error>

#include <linux/magic.h>
#include <sys/statfs.h>

namespace pmlab::microbench {
namespace {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

}  // namespace

std::uint64_t room_on(const bench::medium_spec& medium) {
  const std::uint64_t available = bench::available_memory();
  const std::uint64_t dram = available == no_limit ? no_limit : available / 2;
  if (!medium.in_pool()) return dram;
  std::error_code ignored;
  if (std::filesystem::is_character_file(medium.path, ignored)) return no_limit;
  std::filesystem::path folder = std::filesystem::path(medium.path).parent_path();
  if (folder.empty()) folder = ".";
  struct statfs system {};
  if (::statfs(folder.c_str(), &system) != 0) return no_limit;  // the code that makes the pool reports the problem
  const std::uint64_t free = static_cast<std::uint64_t>(system.f_bavail) * static_cast<std::uint64_t>(system.f_bsize);
  const std::uint64_t share = free / 10 * 9;
  return system.f_type == TMPFS_MAGIC ? std::min(share, dram) : share;
}

}  // namespace pmlab::microbench
