#include "bench/support/pm_counters.hpp"
#include <pmlab/base/child_process.hpp>
#include <pmlab/media/pmem_path.hpp>
#include "bench/support/optional_packages.hpp"
#include "bench/support/printable.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pmlab::bench {
namespace {

// As ipmctl names them, in the order of pm_counts.
constexpr std::array<std::string_view, pm_counts::kinds> printed_names = {"MediaReads", "MediaWrites", "ReadRequests",
                                                                          "WriteRequests"};

pm_reading refused(const std::string& why, const std::string& remedy) {
  return {.counts = {}, .problem = fmt::format("media counters of Optane are not read: {}; {}", why, remedy)};
}

struct printed_end {
  std::string text;
  int status = 0;  // as waitpid has it
  bool in_time = false;
};

// All that a program prints. It is spawned: behind a fork, the first write to each page of this process would fault,
// inside of a measurement.
std::optional<printed_end> run(const std::string& program, std::array<const char*, 4> words) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  const descriptor from(ends[0]);
  descriptor to(ends[1]);
  ::posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO})
    ::posix_spawn_file_actions_adddup2(&actions, to.get(), stream);
  pid_t id = 0;
  const int failed = ::posix_spawn(&id, program.c_str(), &actions, nullptr, const_cast<char**>(words.data()), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  to = descriptor();
  if (failed != 0) return std::nullopt;
  printed_end end;
  constexpr std::chrono::seconds longest(30);
  end.in_time = pmlab::detail::read_from_child(from.get(), std::chrono::steady_clock::now() + longest, end.text);
  if (!end.in_time) ::kill(id, SIGKILL);
  while (::waitpid(id, &end.status, 0) < 0 && errno == EINTR) continue;
  return end;
}

std::string first_line_of(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \r\n"), text.size()));
  constexpr std::size_t most = 120;
  return printable(std::string(text.substr(0, std::min(text.find_first_of("\r\n"), most))));
}

// The counter that a line has; nothing: another line, or a number beyond 64 bits.
std::optional<std::uint64_t> counter_of(std::string_view line, std::string_view name) {
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (!line.starts_with(name)) return std::nullopt;
  line.remove_prefix(name.size());
  if (!line.starts_with("=0x")) return std::nullopt;
  line.remove_prefix(3);
  std::uint64_t value = 0;
  constexpr int hexadecimal = 16;
  if (std::from_chars(line.data(), line.data() + line.size(), value, hexadecimal).ec != std::errc())
    return std::nullopt;
  return value;
}

}  // namespace

pm_reading pm_counters_in(std::string_view printed) {
  pm_counts sums;
  std::array<unsigned, pm_counts::kinds> seen{};
  unsigned modules = 0;
  for (std::string_view rest = printed; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.find("---DimmID=") != std::string_view::npos) ++modules;
    for (std::size_t i = 0; i < pm_counts::kinds; ++i) {
      const std::optional<std::uint64_t> value = counter_of(line, printed_names[i]);
      if (!value) continue;
      sums.counts[i] += *value;
      ++seen[i];
    }
  }
  for (const unsigned count : seen)
    if (modules == 0 || count != modules)
      return refused(fmt::format("ipmctl printed none for each module, but '{}'", first_line_of(printed)),
                     "see `ipmctl show -performance`");
  return {.counts = sums, .modules = modules, .problem = {}};
}

pm_reading read_pm_counters() {
  const std::optional<std::string> program = path_of_program("ipmctl");
  if (!program) return refused("ipmctl is not on PATH", "install package ipmctl");
  const std::optional<printed_end> end = run(*program, {"ipmctl", "show", "-performance", nullptr});
  if (!end) return refused(*program + " cannot be run", "check its permissions");
  if (!end->in_time) return refused("ipmctl did not end within 30 s", "see `ipmctl show -performance`");
  if (!WIFEXITED(end->status) || WEXITSTATUS(end->status) != 0)
    return refused(fmt::format("ipmctl failed: {}", first_line_of(end->text)),
                   ::geteuid() == 0 ? "see `ipmctl show -performance`" : "it needs root's rights");
  return pm_counters_in(end->text);
}

bool is_in_persistent_memory(const std::string& path) {
  const char* const said = std::getenv("PMEM_IS_PMEM_FORCE");
  if (said != nullptr && std::string_view(said) == "1") return true;
  const descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return false;
  const media::backing found = media::backing_of(file.get());
  return found == media::backing::device_dax || found == media::backing::fs_dax;
}

}  // namespace pmlab::bench
