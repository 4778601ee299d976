// The CPU's prefetchers.
#include "microbench/memory/prefetchers.hpp"
#include <pmlab/base/error.hpp>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

namespace pmlab::microbench {
namespace {

constexpr off_t control_register = 0x1a4;
constexpr std::uint64_t all_off = 0xf;

// The saved values, for a signal handler: only plain words and calls that are allowed there.
struct saved_register {
  int file;
  std::uint64_t value;
};
constexpr std::size_t most_cpus = 4096;
std::array<saved_register, most_cpus> saved;
std::atomic<std::size_t> saved_count{0};
constexpr std::array signals = {SIGINT, SIGTERM, SIGHUP};
std::array<struct sigaction, signals.size()> handlers_before;

void put_back() noexcept {
  for (std::size_t i = saved_count.exchange(0); i > 0; --i) {
    const saved_register& s = saved[i - 1];
    static_cast<void>(!::pwrite(s.file, &s.value, sizeof s.value, control_register));
    ::close(s.file);
  }
}

void on_signal(int signal) {
  put_back();
  for (std::size_t i = 0; i < signals.size(); ++i)
    if (signals[i] == signal) ::sigaction(signal, &handlers_before[i], nullptr);
  // The previous handler runs now: the default ends the process.
  ::raise(signal);
}

std::string file_of(const std::string& folder, int cpu) { return fmt::format("{}/{}/msr", folder, cpu); }

struct reading {
  std::optional<std::uint64_t> value;
  std::string problem;
};

reading read_register(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return {std::nullopt, fmt::format("cannot read {}: {}", path, std::strerror(errno))};
  std::uint64_t value = 0;
  const bool read = ::pread(file, &value, sizeof value, control_register) == sizeof value;
  const int why = errno;
  ::close(file);
  if (!read)
    return {std::nullopt, fmt::format("{} has no register 0x1a4{}{}", path, why != 0 ? ": " : "",
                                      why != 0 ? std::strerror(why) : "")};
  return {value, {}};
}

}  // namespace

prefetchers::prefetchers(std::vector<int> cpus, std::string folder)
    : cpus_(std::move(cpus)), folder_(std::move(folder)) {}

prefetchers::~prefetchers() { restore(); }

std::string prefetchers::state() const {
  bool any_on = false;
  bool any_off = false;
  for (const int cpu : cpus_) {
    const reading r = read_register(file_of(folder_, cpu));
    if (!r.value) return "unknown: " + r.problem;
    any_off |= (*r.value & all_off) != 0;
    any_on |= (*r.value & all_off) != all_off;
  }
  return any_on ? any_off ? "part off" : "on" : "off";
}

void prefetchers::switch_off() {
  if (cpus_.size() > most_cpus) throw error("more than 4096 CPUs", "let the process use fewer, with taskset");
  for (std::size_t i = 0; i < signals.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = &on_signal;
    ::sigaction(signals[i], &action, &handlers_before[i]);
  }
  for (const int cpu : cpus_) {
    const std::string path = file_of(folder_, cpu);
    const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
    std::uint64_t value = 0;
    const std::uint64_t off = [&] {
      return file >= 0 && ::pread(file, &value, sizeof value, control_register) == sizeof value ? value | all_off : 0;
    }();
    // Known to the handler before it is changed.
    const std::size_t at = saved_count;
    if (off != 0) {
      saved[at] = {file, value};
      saved_count = at + 1;
    }
    if (off == 0 || ::pwrite(file, &off, sizeof off, control_register) != sizeof off) {
      const std::string why = std::strerror(errno);
      if (off == 0 && file >= 0) ::close(file);
      restore();
      throw error(fmt::format("cannot switch prefetchers off: {}: {}", path, why),
                  "run as root with the kernel module msr on an Intel CPU, or leave --prefetchers out");
    }
  }
}

void prefetchers::restore() noexcept {
  if (saved_count == 0) return;
  put_back();
  for (std::size_t i = 0; i < signals.size(); ++i) ::sigaction(signals[i], &handlers_before[i], nullptr);
}

}  // namespace pmlab::microbench
