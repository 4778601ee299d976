// Memory that the kernel leaves to the control groups of this process.
#include "bench/support/control_group.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string_view>

namespace pmlab::bench {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();

// The files of a version of control groups.
struct version {
  std::string_view controller;  // in /proc/self/cgroup
  std::string_view folder;      // below the mounts
  const char* limit;
  const char* used;
  std::array<std::string_view, 2>
      cached;  // in memory.stat: of files. `file` would count tmpfs, too, which the kernel cannot drop
};

constexpr version second{"", "", "memory.max", "memory.current", {"inactive_file", "active_file"}};
constexpr version first{
    "memory", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", {"total_inactive_file", "total_active_file"}};

// No number: "max", or no such file.
std::uint64_t number_in(const fs::path& path, std::uint64_t otherwise) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  return file >> number ? number : otherwise;
}

std::uint64_t left_in(const fs::path& group, const version& v) {
  const std::uint64_t limit = number_in(group / v.limit, no_limit);
  if (limit == no_limit) return no_limit;
  std::uint64_t used = number_in(group / v.used, 0);
  std::ifstream parts(group / "memory.stat");
  std::string part;
  for (std::uint64_t bytes = 0; parts >> part >> bytes;)
    if (std::find(v.cached.begin(), v.cached.end(), part) != v.cached.end()) used -= std::min(used, bytes);
  return limit - std::min(limit, used);
}

// The path of the process's group, as "4:memory,cpu:/a/b" or "0::/a/b" have it. Empty: it is in none of this version.
std::string group_in(const std::string& membership, const version& v) {
  std::ifstream lines(membership);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find(':');
    const std::size_t end = line.find(':', begin + 1);
    if (begin == std::string::npos || end == std::string::npos) continue;
    const std::string controllers = "," + line.substr(begin + 1, end - begin - 1) + ",";
    if (controllers.find("," + std::string(v.controller) + ",") != std::string::npos) return line.substr(end + 1);
  }
  return {};
}

}  // namespace

std::uint64_t available_to_control_group(const std::string& membership, const std::string& mounts) {
  std::uint64_t least = no_limit;
  for (const version& v : {second, first}) {
    const fs::path root = fs::path(mounts) / v.folder;
    // In a container the mount may begin at the group itself, whatever the path is outside: the root is examined, too.
    fs::path path = fs::path(group_in(membership, v)).relative_path();
    if (path.string().find("..") != std::string::npos) path.clear();
    for (;; path = path.parent_path()) {
      least = std::min(least, left_in(root / path, v));
      if (path.empty()) break;
    }
  }
  return least;
}

}  // namespace pmlab::bench
