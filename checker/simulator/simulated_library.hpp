// Which shared libraries the simulated machine can run.
#pragma once

#include <pmlab/base/error.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::simulator {
namespace detail {

[[nodiscard]] inline bool holds(const std::string& path, std::string_view text) {
  std::ifstream file(path, std::ios::binary);
  if (!std::filesystem::is_regular_file(path) || !file)
    throw error("there is no library " + path, "check the path and its permissions");
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return std::search(bytes.begin(), bytes.end(), text.begin(), text.end()) != bytes.end();
}

}  // namespace detail

// Whether this file was built by pmlab_simulate or scripts/pmlab-c++. Throws pmlab::error if it cannot be read.
[[nodiscard]] inline bool reports_its_accesses(const std::string& path) {
  // Every object that reports its accesses calls this when it is loaded, and its name is among those to be found.
  return detail::holds(path, "__tsan_init");
}

// Throws pmlab::error, if this file cannot run on the simulated machine.
inline void check_simulated(const std::string& path) {
  if (!reports_its_accesses(path))
    throw error(path + " was not built for the simulated machine", "build it with scripts/pmlab-c++");
  if (detail::holds(path, "libpmemobj.so"))
    throw error(path + " uses libpmemobj, whose accesses and open pools the simulated machine does not see",
                "use libpmem, or mmap and flush instructions");
}

// Throws pmlab::error, if reports could name no source lines of this file.
inline void check_debug_information(const std::string& path) {
  // Names of sections, the second one of a file that leads to the information elsewhere.
  if (!detail::holds(path, std::string_view(".debug_line\0", 12)) && !detail::holds(path, ".gnu_debuglink"))
    throw error(path + " has no debug information, so that a report could name no source line of it",
                "do not strip it, and build it with scripts/pmlab-c++, which adds -g1");
}

}  // namespace pmlab::simulator
