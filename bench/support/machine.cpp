// The machine and the build that figures come from.
#include "bench/support/machine.hpp"
#include <pmlab/base/simd.hpp>
#include <pmlab/media/cache_flush.hpp>
#include "bench/support/build_info.hpp"
#include "bench/support/control_group.hpp"
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

std::uint64_t available_memory() {
  std::uint64_t available = std::numeric_limits<std::uint64_t>::max();
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);) {
    constexpr std::string_view name = "MemAvailable:";
    constexpr int decimal = 10;
    if (line.starts_with(name)) available = std::strtoull(line.c_str() + name.size(), nullptr, decimal) << 10;
  }
  return std::min(available, available_to_control_group("/proc/self/cgroup", "/sys/fs/cgroup"));
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
