// Work on a pool that may be damaged, in a process of its own.
#include <pmlab/pool/child.hpp>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pmlab::pool {
namespace {

using clock = std::chrono::steady_clock;

// The first character of what a child says.
constexpr char answered = 'a', refused = 'r';

void write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

[[noreturn]] void child(int to, const std::function<std::string()>& work) {
  for (const int fatal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL}) ::signal(fatal, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  // Libraries complain there before they abort.
  if (const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
  try {
    write_all(to, answered + work());
  } catch (const std::exception& e) {
    write_all(to, refused + std::string(e.what()));
  }
  ::_exit(0);
}

// Everything until the child closes its end. False: the time is over.
bool read_all(int from, clock::time_point deadline, std::string& text) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now()).count();
    pollfd wait{from, POLLIN, 0};
    if (left <= 0) return false;
    constexpr int longest = 60'000;
    const int ready = ::poll(&wait, 1, left < longest ? static_cast<int>(left) : longest);
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    std::array<char, 1 << 16> part;
    const ssize_t got = ::read(from, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace

std::string in_child(const std::string& doing, std::chrono::seconds patience,
                     const std::function<std::string()>& work) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw error(fmt::format("{}: cannot make a pipe: {}", doing, std::strerror(errno)), "close other programs");
  const pid_t id = ::fork();
  if (id == 0) {
    ::close(ends[0]);
    child(ends[1], work);
  }
  ::close(ends[1]);
  if (id < 0) {
    ::close(ends[0]);
    throw error(fmt::format("{}: cannot start a process: {}", doing, std::strerror(errno)), "close other programs");
  }
  std::string said;
  const bool in_time = read_all(ends[0], clock::now() + patience, said);
  ::close(ends[0]);
  if (!in_time) ::kill(id, SIGKILL);
  int status = 0;
  while (::waitpid(id, &status, 0) == -1 && errno == EINTR) {
  }
  if (!in_time)
    throw damage(fmt::format("{}: no end after {} s, which --timeout SECONDS can change", doing, patience.count()));
  if (WIFSIGNALED(status))
    throw damage(fmt::format("{}: the process that tried was ended by '{}'", doing, ::strsignal(WTERMSIG(status))));
  if (said.empty()) throw damage(doing + ": the process that tried ended by itself");
  const bool fine = said.front() == answered;
  said.erase(0, 1);
  if (!fine) throw error(said, {});
  return said;
}

}  // namespace pmlab::pool
