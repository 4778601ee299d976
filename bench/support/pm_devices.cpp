// The persistent memory that the kernel reports.
#include "bench/support/pm_devices.hpp"
#include "bench/support/machine.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>

#include <unistd.h>

namespace pmlab::bench {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries_of(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const fs::directory_entry& e : fs::directory_iterator(folder, ignored))
    if (e.path().filename().string().starts_with(prefix)) found.push_back(e.path());
  std::sort(found.begin(), found.end());
  return found;
}

// "dax", "dax=always", among options such as "rw,relatime,dax=always". "dax=never" and "dax=inode" promise nothing.
bool mounted_with_dax(const std::string& options) {
  std::istringstream words(options);
  for (std::string word; std::getline(words, word, ',');)
    if (word == "dax" || word == "dax=always") return true;
  return false;
}

}  // namespace

pm_devices find_pm_devices() {
  pm_devices found;
  for (const fs::path& p : entries_of("/sys/bus/nd/devices", "namespace")) {
    const std::uint64_t bytes = std::strtoull(first_line(p / "size").c_str(), nullptr, 10);
    if (bytes > 0) found.name_spaces.push_back({p.filename().string(), first_line(p / "mode"), bytes});
  }
  for (const fs::path& p : entries_of("/dev", "dax")) found.dax_devices.push_back(p.string());
  std::ifstream mounts("/proc/mounts");
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream fields(line);
    std::string device;
    std::string folder;
    std::string type;
    std::string options;
    fields >> device >> folder >> type >> options;
    if (!mounted_with_dax(options)) continue;
    found.dax_mounts.push_back(folder);
    if (::access(folder.c_str(), W_OK) == 0) found.writable_mounts.push_back(folder);
  }
  return found;
}

}  // namespace pmlab::bench
