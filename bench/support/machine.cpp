// The machine and the build that figures come from.
#include "bench/support/machine.hpp"
#include <pmlab/base/simd.hpp>
#include <pmlab/media/cache_flush.hpp>
#include "bench/support/build_info.hpp"
#include "bench/support/thread_team.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <numa.h>
#include <sys/utsname.h>

namespace pmlab::bench {
namespace {

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string kernel() {
  utsname system{};
  if (uname(&system) != 0) return "unknown";
  return fmt::format("{} {} {}", system.sysname, system.release, system.machine);
}

std::string compiler() {
#if defined(__clang__)
  return fmt::format("clang++ {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#else
  return fmt::format("g++ {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#endif
}

}  // namespace

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

namespace {

// No number: "max", or no such file.
std::uint64_t number_in(const std::string& path, std::uint64_t otherwise) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  return file >> number ? number : otherwise;
}

}  // namespace

std::uint64_t available_memory() {
  constexpr std::uint64_t no_limit = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t available = no_limit;
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);) {
    constexpr std::string_view name = "MemAvailable:";
    constexpr int decimal = 10;
    if (line.starts_with(name)) available = std::strtoull(line.c_str() + name.size(), nullptr, decimal) << 10;
  }
  const std::uint64_t limit = number_in("/sys/fs/cgroup/memory.max", no_limit);
  std::uint64_t used = number_in("/sys/fs/cgroup/memory.current", 0);
  // The kernel drops cached files when it needs their memory. `file` would count tmpfs, too, which it cannot drop.
  std::ifstream parts("/sys/fs/cgroup/memory.stat");
  std::string part;
  for (std::uint64_t bytes = 0; parts >> part >> bytes;)
    if (part == "inactive_file" || part == "active_file") used -= std::min(used, bytes);
  return limit == no_limit ? available : std::min(available, limit - std::min(limit, used));
}

std::string chosen_word(std::string_view line) {
  const std::size_t open = line.find('[');
  const std::size_t close = line.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return std::string(line);
  return std::string(line.substr(open + 1, close - open - 1));
}

machine_facts facts_of_this_machine() {
  machine_facts facts;
  facts.cpu = cpu_model();
  facts.cores = static_cast<unsigned>(usable_cpus().size());
  facts.numa_nodes = numa_available() >= 0 ? static_cast<unsigned>(numa_num_configured_nodes()) : 1;
  facts.kernel = kernel();
  facts.flush = to_string(media::best_flush_instruction());
  facts.simd = to_string(simd_of_this_cpu());
  facts.huge_pages = chosen_word(first_line("/sys/kernel/mm/transparent_hugepage/enabled"));
  facts.compiler = compiler();
  facts.flags = build_flags();
  facts.commit = build_commit();
  facts.version = build_version();
  facts.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                           fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
  return facts;
}

}  // namespace pmlab::bench
