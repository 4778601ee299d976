// Counters of the CPU, as the kernel gives them to a thread.
#include "bench/support/cpu_counters.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pmlab::bench {
namespace {

struct event {
  std::uint32_t type;
  std::uint64_t config;
};

constexpr std::uint64_t read_misses(std::uint64_t cache) {
  return cache | (PERF_COUNT_HW_CACHE_OP_READ << 8) | (PERF_COUNT_HW_CACHE_RESULT_MISS << 16);
}

// In the order of cpu_events::names.
constexpr std::array<event, cpu_events::kinds> events_of_cpu = {
    {{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
     {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
     {PERF_TYPE_HW_CACHE, read_misses(PERF_COUNT_HW_CACHE_LL)},
     {PERF_TYPE_HW_CACHE, read_misses(PERF_COUNT_HW_CACHE_DTLB)}}};

// -1: errno has the reason.
int open_event(const event& e) noexcept {
  perf_event_attr asked{};
  asked.size = sizeof asked;
  asked.type = e.type;
  asked.config = e.config;
  asked.exclude_kernel = 1;
  asked.exclude_hv = 1;
  asked.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  constexpr int this_thread = 0, any_cpu = -1, no_group = -1;
  return static_cast<int>(::syscall(SYS_perf_event_open, &asked, this_thread, any_cpu, no_group, PERF_FLAG_FD_CLOEXEC));
}

std::string reason_of(int number) {
  if (number == EACCES || number == EPERM) {
    std::ifstream setting("/proc/sys/kernel/perf_event_paranoid");
    std::string level;
    return setting >> level
               ? fmt::format("kernel.perf_event_paranoid is {}; 2 or less lets users count their own threads", level)
               : std::string("this process may not; it may be in a container without perf_event_open");
  }
  if (number == ENOENT || number == EOPNOTSUPP || number == ENODEV)
    return "this CPU has no such counter, as in most virtual machines; measure on the machine itself";
  if (number == ENOSYS) return "this kernel is built without them";
  return fmt::format("perf_event_open: {}", std::strerror(number));
}

}  // namespace

cpu_counters::cpu_counters() noexcept {
  for (std::size_t i = 0; i < files_.size(); ++i) files_[i] = open_event(events_of_cpu[i]);
}

cpu_counters::~cpu_counters() {
  for (const int file : files_)
    if (file >= 0) ::close(file);
}

cpu_events cpu_counters::events() const noexcept {
  cpu_events found;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    struct {
      std::uint64_t count, enabled, running;
    } now{};
    if (files_[i] < 0 || ::read(files_[i], &now, sizeof now) != sizeof now || now.running == 0) continue;
    found.counts[i] =
        static_cast<double>(now.count) * static_cast<double>(now.enabled) / static_cast<double>(now.running);
  }
  return found;
}

std::string cpu_counters::refusal() {
  std::string missing, reason;
  for (std::size_t i = 0; i < events_of_cpu.size(); ++i) {
    const int file = open_event(events_of_cpu[i]);
    if (file < 0) {
      if (reason.empty()) reason = reason_of(errno);
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", cpu_events::names[i]);
    } else {
      ::close(file);
    }
  }
  return missing.empty() ? std::string() : fmt::format("--cpu-counters has no {}: {}", missing, reason);
}

}  // namespace pmlab::bench
