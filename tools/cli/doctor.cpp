// `pmlab doctor`: the capabilities of this machine, tested and not only read from the system.
#include "tools/cli/doctor.hpp"
#include "tools/cli/simulated_program.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/media/cache_flush.hpp>
#include <pmlab/media/clock.hpp>
#include <pmlab/media/jemalloc_dram.hpp>
#include "bench/support/htm_probe.hpp"
#include "bench/support/huge_page_probe.hpp"
#include "bench/support/machine.hpp"
#include "bench/support/optional_packages.hpp"
#include "bench/support/pm_counters.hpp"
#include "bench/support/pm_devices.hpp"
#include "bench/support/quantity.hpp"
#include "bench/support/thread_team.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <jemalloc/jemalloc.h>
#include <libpmem.h>
#include <numa.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace pmlab::cli {
namespace {

void line(std::string_view subject, const std::string& finding) { fmt::print("{:<12} {}\n", subject, finding); }
void more(const std::string& finding) { line("", finding); }

std::string plural(std::uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

struct folder_space {
  bool writable = false;
  std::uint64_t total = 0;
  std::uint64_t available = 0;
};

folder_space space_of(const char* folder) {
  struct statvfs s {};
  if (::statvfs(folder, &s) != 0) return {};
  return {::access(folder, W_OK) == 0, static_cast<std::uint64_t>(s.f_blocks) * s.f_frsize,
          static_cast<std::uint64_t>(s.f_bavail) * s.f_frsize};
}

void show_cpu() {
  const bench::machine_facts facts = bench::facts_of_this_machine();
  line("cpu", fmt::format("{}; {} for this process", facts.cpu, plural(facts.cores, "core")));
  line("kernel", facts.kernel);
  line("simd", fmt::format("{}: chosen at run time for this CPU, for any compiler flags", facts.simd));
  const media::flush_instruction flush = media::best_flush_instruction();
  if (flush == media::flush_instruction::clwb)
    line("flush", "clwb: written-back lines stay in the cache");
  else
    line("flush", fmt::format("no clwb on this CPU: {} is used instead, which evicts the line; "
                              "reads after a flush are slower",
                              to_string(flush)));
}

void show_eadr(const bench::pm_devices& devices) {
  const int automatic = pmem_has_auto_flush();
  if (automatic == 1)
    line("eADR", "yes: the platform flushes the caches at power failure; pmlab flushes nothing on pmem media");
  else if (!devices.any())
    line("eADR", "unknown: the kernel reports it only with persistent memory");
  else
    line("eADR", automatic == 0 ? "no: lines must be flushed" : "unknown: the kernel did not report it");
}

void show_htm() {
  const bench::htm_probe htm = bench::probe_htm();
  const std::string advertised = htm.advertised ? "advertised" : "not advertised";
  std::string found = fmt::format("works: {} of {} transactions committed", htm.committed, htm.tried);
  if (!htm.executable)
    found = "does not work: its instructions are illegal here";
  else if (!htm.works())
    found = fmt::format("does not work: all of {} transactions were aborted", htm.tried);
  line("HTM", fmt::format("{}, {} {}", advertised, htm.advertised == htm.works() ? "and" : "but", found));
  line("", "inner nodes of fp_tree: version locks (transactions only if a program requests them: never run yet)");
}

void show_numa() {
  if (numa_available() < 0) return line("NUMA", "one node");
  const int nodes = numa_num_configured_nodes();
  line("NUMA", plural(static_cast<std::uint64_t>(nodes), "node"));
  for (int node = 0; node <= numa_max_node(); ++node) {
    long long available = 0;
    const long long total = numa_node_size64(node, &available);
    if (total < 0) continue;
    more(fmt::format("node {}: {} DRAM, {} free", node, bench::readable_bytes(static_cast<std::uint64_t>(total)),
                     bench::readable_bytes(static_cast<std::uint64_t>(available))));
  }
}

void show_huge_pages() {
  const bench::huge_page_probe found = bench::probe_huge_pages();
  line("huge pages", fmt::format("DRAM: {} (the kernel's setting is {})",
                                 found.anonymous ? "granted on request" : "NOT granted on request",
                                 found.anonymous_setting.empty() ? "not known" : found.anonymous_setting));
  more(fmt::format("/dev/shm: {} (the kernel's setting is {})",
                   found.tmpfs_collapse ? "granted by MADV_COLLAPSE" : "NOT granted:  " + found.tmpfs_problem,
                   found.shmem_setting.empty() ? "not known" : found.shmem_setting));
}

void show_clock() {
  const media::fast_clock& clock = media::fast_clock::instance();
  constexpr int readings = 100'000;
  const std::uint64_t start = clock.now_after_loads();
  std::uint64_t last = start;
  for (int i = 0; i < readings; ++i) last = clock.now_after_loads();
  const double cost = static_cast<double>(last - start) / readings / 1000;
  if (clock.uses_tsc())
    line("clock", fmt::format("invariant time-stamp counter, {:.4f} ns a tick; a reading costs {:.1f} ns",
                              1e9 / clock.tsc_hz(), cost));
  else
    line("clock", fmt::format("no invariant time-stamp counter: the kernel's clock is used, a reading costs {:.1f} ns, "
                              "and short latencies are not reliable",
                              cost));
}

void show_jemalloc() {
  const char* version = nullptr;
  std::size_t size = sizeof version;
  const bool there = mallctl("version", static_cast<void*>(&version), &size, nullptr, 0) == 0 && version != nullptr;
  line("jemalloc", there ? version : "not installed: DRAM media do not work");
}

void show_devices(const bench::pm_devices& devices) {
  if (!devices.any()) return line("PM devices", "none: no namespace in /sys/bus/nd, no /dev/dax*, no mount with dax");
  line("PM devices", plural(devices.name_spaces.size(), "namespace"));
  for (const bench::pm_devices::name_space& n : devices.name_spaces)
    more(fmt::format("{}: mode {}, {}", n.name, n.mode.empty() ? "not known" : n.mode, bench::readable_bytes(n.bytes)));
  for (const std::string& d : devices.dax_devices) more(fmt::format("{}: devdax", d));
  for (const std::string& m : devices.dax_mounts) {
    const bool writable =
        std::find(devices.writable_mounts.begin(), devices.writable_mounts.end(), m) != devices.writable_mounts.end();
    more(fmt::format("{}: fsdax{}", m, writable ? "" : ", not writable for this user"));
  }
}

void show_counters() {
  const bench::pm_reading found = bench::read_pm_counters();
  line("PM counters", found.counts ? fmt::format("of {}, by ipmctl", plural(found.modules, "module")) : found.problem);
}

// What this build may be without.
void show_optional_packages() {
  std::string_view subject = "optional";
  for (const bench::optional_package& p : bench::optional_packages()) line(std::exchange(subject, ""), p.state());
}

bool dram_works() {
  try {
    media::jemalloc_dram dram;
    media::jemalloc_dram::publication change(dram);
    constexpr std::size_t bytes = std::size_t{1} << 20;
    return change.allocate(bytes, media::cache_line_bytes) != nullptr;
  } catch (const error&) {
    return false;
  }
}

// The recommended medium of this machine, and the command to begin with.
bool show_advice(const bench::pm_devices& devices, const folder_space& shared_memory) {
  constexpr std::uint64_t least_pool = std::uint64_t{256} << 20;
  constexpr const char* command = "pmlab bench --index cceh,fast_fair --medium {} --records 1M --repeat 3";
  std::string medium;
  if (!devices.writable_mounts.empty()) {
    medium = "pmem:" + devices.writable_mounts.front() + "/pmlab.pool";
    line("medium", medium + " (persistent memory)");
  } else if (shared_memory.writable && shared_memory.available >= least_pool) {
    medium = "pmem:/dev/shm/pmlab.pool";
    line("medium", medium + " (a pool in DRAM: all but the device's own latencies), and emulated:PROFILE for those");
  } else if (dram_works()) {
    medium = "dram";
    line("medium", "dram, and emulated:PROFILE: there is no place for a pool");
  } else {
    line("medium", "none: no place for a pool, and no DRAM can be allocated");
    return false;
  }
  if (devices.writable_mounts.empty() && !devices.dax_devices.empty())
    more(fmt::format("pmem:{} too, for one index at a time, if this user may write it", devices.dax_devices.front()));
  fmt::print("\nStart with:\n  {}\n", fmt::format(fmt::runtime(command), medium));
  fmt::print("  pmlab bench --index cceh,fast_fair --medium emulated:aep --records 1M\n");
  return true;
}

int examine() {
  const bench::pm_devices devices = bench::find_pm_devices();
  show_cpu();
  show_eadr(devices);
  show_htm();
  show_numa();
  show_huge_pages();
  show_clock();
  show_jemalloc();
  line("simulation", state_of_simulation());
  show_optional_packages();
  show_devices(devices);
  show_counters();
  const folder_space shared_memory = space_of("/dev/shm");
  line("/dev/shm", shared_memory.total == 0
                       ? "not there"
                       : fmt::format("{}, {} free{}", bench::readable_bytes(shared_memory.total),
                                     bench::readable_bytes(shared_memory.available),
                                     shared_memory.writable ? "" : ", not writable for this user"));
  return show_advice(devices, shared_memory) ? success : failure;
}

}  // namespace

command add_doctor(CLI::App& program) {
  CLI::App* const app =
      program.add_subcommand("doctor", "Tests this machine, or a path for pools, and advises where to begin");
  const auto path = std::make_shared<std::string>();
  app->add_option("path", *path, "PATH of a pool, or of a folder or a device for pools: which media it can hold")
      ->type_name("");
  app->footer("  pmlab doctor\n  pmlab doctor /mnt/pmem/my.pool");
  return {app, [path, app] { return app->count("path") == 0 ? examine() : examine_path(*path); }};
}

}  // namespace pmlab::cli
