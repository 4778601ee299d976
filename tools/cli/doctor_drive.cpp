// `pmlab doctor PATH`, the drive below it: direct I/O, io_uring, blocks, cache, and short measurements.
#include "tools/cli/doctor.hpp"
#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/file.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include "bench/support/quantity.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace pmlab::cli {
namespace {

namespace fs = std::filesystem;
using steady = std::chrono::steady_clock;

constexpr std::uint64_t trial_bytes = std::uint64_t{16} << 20;
constexpr std::uint32_t block_bytes = 4096;

void line(std::string_view subject, std::string_view finding) { fmt::print("{:<12} {}\n", subject, finding); }

std::string yes_or_no(const std::optional<bool>& value) { return value ? (*value ? "yes" : "no") : "not known"; }

std::string readable_time(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.1f} us", seconds * 1e6) : fmt::format("{:.2f} ms", seconds * 1e3);
}

// Median and 99th percentile of an operation, for a third of a second at most.
std::string latency_of(const std::function<void()>& operation) {
  constexpr std::size_t most = 1000;
  constexpr double seconds = 0.33;
  std::vector<double> times;
  const steady::time_point start = steady::now();
  for (steady::time_point last = start; times.size() < most;) {
    operation();
    const steady::time_point now = steady::now();
    times.push_back(std::chrono::duration<double>(now - last).count());
    last = now;
    if (std::chrono::duration<double>(now - start).count() > seconds) break;
  }
  std::ranges::sort(times);
  const std::size_t p99 = std::min(times.size() - 1, times.size() * 99 / 100);
  return fmt::format("median {}, p99 {} ({} times)", readable_time(times[times.size() / 2]), readable_time(times[p99]),
                     times.size());
}

// One block at a time, at random places.
void show_latencies(blocks::file& drive, bool rewrites) {
  blocks::synchronous device(drive);
  blocks::buffer data(block_bytes);
  splitmix64 random(1);
  const std::uint64_t count = drive.shape().blocks;
  const auto read = [&](std::uint64_t block) { device.read(block, data.bytes()); };
  line("read 4 KB", latency_of([&] { read(random.below(count)); }));
  if (rewrites) {
    // The content of another owner stays: each block gets what it has.
    const std::uint64_t block = random.below(count);
    read(block);
    line("write", latency_of([&] { device.write(block, data.bytes()); }));
    line("write+flush", latency_of([&] { device.write(block, data.bytes()), device.flush(); }));
    return;
  }
  line("write", latency_of([&] { device.write(random.below(count), data.bytes()); }));
  line("write+flush", latency_of([&] { device.write(random.below(count), data.bytes()), device.flush(); }));
}

void show_facts(const blocks::file& drive, bool direct) {
  const blocks::drive_facts& facts = drive.facts();
  const std::string known = facts.drive.empty() ? "not known" : facts.drive;
  line("drive", facts.block_device ? known : fmt::format("{}, file system {}", known, facts.file_system));
  line("direct I/O", direct ? "yes" : "no: blocks::file needs its option page_cache here, which the figures below use");
  line("io_uring", drive.uses_io_uring() ? "yes" : "no: " + drive.way());
  line("blocks", fmt::format("{} bytes logical, {} physical", facts.logical_block,
                             facts.physical_block == 0 ? "not known" : std::to_string(facts.physical_block)));
  line("cache", !facts.volatile_cache   ? "not known: flushes are needed, to be safe"
                : *facts.volatile_cache ? "volatile: completed writes need a flush"
                                        : "none that is volatile: completed writes are durable");
  line("FUA", yes_or_no(facts.fua));
  line("atomic unit", facts.atomic_unit == 0 ? "none promised: a power failure may tear a write at each 512 bytes"
                                             : fmt::format("{} bytes", facts.atomic_unit));
}

// With direct I/O, or through the page cache where there is none.
void examine(const std::string& path, bool rewrites) {
  std::optional<blocks::file> drive;
  bool direct = true;
  try {
    drive.emplace(path);
  } catch (const error&) {
    direct = false;
    drive.emplace(path, blocks::file_options{.page_cache = true});
  }
  if (!rewrites) ::unlink(path.c_str());  // the device keeps it
  show_facts(*drive, direct);
  show_latencies(*drive, rewrites);
}

}  // namespace

void examine_drive_below(const std::string& folder) {
  struct removed {
    std::string path;
    ~removed() { ::unlink(path.c_str()); }
  };
  const removed trial{(fs::path(folder) / fmt::format(".pmlab-doctor-{}", ::getpid())).string()};
  try {
    blocks::create_file(trial.path, trial_bytes);
    examine(trial.path, false);
  } catch (const error& e) {
    line("drive", fmt::format("not examined: {}", e.what()));
  }
}

void examine_block_device(const std::string& path) {
  try {
    examine(path, true);
  } catch (const error& e) {
    line("drive", fmt::format("not examined: {}", e.what()));
  }
}

}  // namespace pmlab::cli
