// How large a working set this machine has room for.
#include <pmlab/microbench/room.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>

#include <linux/magic.h>
#include <sys/statfs.h>

namespace pmlab::microbench {
namespace {

constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

std::uint64_t free_dram() {
  std::ifstream info("/proc/meminfo");
  std::string name;
  std::uint64_t kilobytes = 0;
  std::string unit;
  while (info >> name >> kilobytes) {
    std::getline(info, unit);
    if (name == "MemAvailable:") return kilobytes << 10;
  }
  return no_limit;
}

}  // namespace

std::uint64_t room_on(const bench::medium_spec& medium) {
  const std::uint64_t dram = free_dram() == no_limit ? no_limit : free_dram() / 2;
  if (!medium.in_pool()) return dram;
  std::error_code ignored;
  if (std::filesystem::is_character_file(medium.path, ignored)) return no_limit;
  std::filesystem::path folder = std::filesystem::path(medium.path).parent_path();
  if (folder.empty()) folder = ".";
  struct statfs system {};
  if (::statfs(folder.c_str(), &system) != 0) return no_limit;  // whoever makes the pool says what is wrong
  const std::uint64_t free = static_cast<std::uint64_t>(system.f_bavail) * static_cast<std::uint64_t>(system.f_bsize);
  const std::uint64_t share = free / 10 * 9;
  return system.f_type == TMPFS_MAGIC ? std::min(share, dram) : share;
}

}  // namespace pmlab::microbench
