// Code that may fault or hang, run where it cannot take the test with it.
#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pmlab::tests {

// How a child ended, and what it said.
struct child_result {
  enum class end : std::uint8_t { returned, faulted, hung };
  end how = end::returned;
  int signal = 0;       // of a child that faulted
  std::string message;  // what the function returned; empty if it did not return

  [[nodiscard]] std::string describe() const {
    switch (how) {
      case end::returned: return "returned: " + message;
      case end::faulted: return "died of signal " + std::to_string(signal);
      case end::hung: return "hung";
    }
    return "?";
  }
};

// Runs `work` in a child process made by fork, for at most `limit`. Call it while this process has one thread.
// What `work` returns comes back as the message. An exception that leaves `work` counts as a fault.
[[nodiscard]] inline child_result run_in_child(const std::function<std::string()>& work,
                                               std::chrono::milliseconds limit) {
  int ends[2];
  if (::pipe(ends) != 0) throw std::runtime_error("cannot make a pipe");
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    ::close(ends[0]);
    // The defaults, since a sanitizer's own handlers would print a report that belongs to no failure of the test.
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL}) std::signal(fault, SIG_DFL);
    int status = 1;
    try {
      const std::string said = work();
      std::size_t written = 0;
      while (written < said.size()) {
        const ssize_t now = ::write(ends[1], said.data() + written, said.size() - written);
        if (now <= 0) break;
        written += static_cast<std::size_t>(now);
      }
      status = 0;
    } catch (...) {
      status = 1;
    }
    ::_exit(status);
  }
  ::close(ends[1]);
  child_result result;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (bool open = true; open;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wait{ends[0], POLLIN, 0};
    if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) == 0) {
      result.how = child_result::end::hung;
      ::kill(child, SIGKILL);
      break;
    }
    char buffer[4096];
    const ssize_t got = ::read(ends[0], buffer, sizeof buffer);
    if (got > 0) result.message.append(buffer, static_cast<std::size_t>(got));
    open = got > 0;
  }
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (result.how == child_result::end::hung) return result;
  if (WIFSIGNALED(status) || WEXITSTATUS(status) != 0) {
    result.how = child_result::end::faulted;
    result.signal = WIFSIGNALED(status) ? WTERMSIG(status) : SIGABRT;
  }
  return result;
}

}  // namespace pmlab::tests
