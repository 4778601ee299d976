// Runs work that may crash or hang in a child process.
#pragma once

#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pmlab {

// How a child process ended.
struct child_end {
  // returned: its work returned, and `text` is the result; threw: an exception left it, and `text` is its message;
  // signalled: a signal ended it, such as SIGSEGV; late: it was killed at its time limit; vanished: it ended by itself.
  enum class how : std::uint8_t { returned, threw, signalled, late, vanished };
  how end = how::vanished;  // which of them
  int signal = 0;           // of one that was signalled
  std::string text;         // of one that returned or threw
};

namespace detail {

// The first character of the answer of a child.
inline constexpr char child_returned = 'a', child_threw = 'r';

[[noreturn]] inline void be_child(int to, const std::function<std::string()>& work) {
  // A handler of the parent's would report a fault as the parent's.
  for (const int fatal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL}) ::signal(fatal, SIG_DFL);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  // Libraries complain there before they abort.
  if (const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC); nowhere >= 0) ::dup2(nowhere, STDERR_FILENO);
  std::string answer;
  try {
    answer = child_returned + work();
  } catch (const std::exception& e) {
    answer = child_threw + std::string(e.what());
  }
  for (std::string_view left = answer; !left.empty();) {
    const ssize_t written = ::write(to, left.data(), left.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  ::_exit(0);
}

// Everything until the child closes its end. False: the time is over.
inline bool read_from_child(int from, std::chrono::steady_clock::time_point deadline, std::string& text) {
  using namespace std::chrono;
  for (;;) {
    const auto left = duration_cast<milliseconds>(deadline - steady_clock::now());
    if (left.count() <= 0) return false;
    constexpr milliseconds longest(60'000);
    pollfd wait{from, POLLIN, 0};
    const int ready = ::poll(&wait, 1, static_cast<int>(std::min(left, longest).count()));
    if (ready == 0 || (ready < 0 && errno == EINTR)) continue;
    std::array<char, 1 << 16> part;
    const ssize_t got = ::read(from, part.data(), part.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace detail

// Runs `work` in a child process made by fork, and kills it if it takes longer than `limit`. Its output to stderr is
// lost, and so is every change that it makes to memory. REQUIRES: no other thread of this process holds a lock that
// `work` needs; for locks of libc and libpmemobj this holds only in a process of one thread (with more, the child may
// wait for a lock for ever, and ends late). Throws pmlab::error if no process can be made.
[[nodiscard]] inline child_end in_child_process(std::chrono::milliseconds limit,
                                                const std::function<std::string()>& work) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw error(std::string("cannot make a pipe: ") + std::strerror(errno), "close other programs");
  const descriptor from(ends[0]);
  descriptor to(ends[1]);
  const pid_t id = ::fork();
  if (id == 0) detail::be_child(to.get(), work);
  if (id < 0) throw error(std::string("cannot start a process: ") + std::strerror(errno), "close other programs");
  to = descriptor();
  std::string said;
  const bool in_time = detail::read_from_child(from.get(), std::chrono::steady_clock::now() + limit, said);
  if (!in_time) ::kill(id, SIGKILL);
  int status = 0;
  while (::waitpid(id, &status, 0) == -1 && errno == EINTR) {
  }
  if (!in_time) return {child_end::how::late, 0, {}};
  if (WIFSIGNALED(status)) return {child_end::how::signalled, WTERMSIG(status), {}};
  if (said.empty()) return {child_end::how::vanished, 0, {}};
  const bool returned = said.front() == detail::child_returned;
  return {returned ? child_end::how::returned : child_end::how::threw, 0, said.substr(1)};
}

}  // namespace pmlab
