// Child processes: one to watch, wait for and kill; and work that may fault or never end, in a process of its own.
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
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pmlab {

// Why a process ended.
struct exit_reason {
  int signal = 0;  // that ended it; 0: it ended by itself
  int status = 0;  // its exit status then

  // Ended by itself, with status 0.
  [[nodiscard]] bool is_success() const noexcept { return signal == 0 && status == 0; }
  // "status 3", "signal 11 (Segmentation fault)".
  [[nodiscard]] std::string text() const {
    if (signal == 0) return "status " + std::to_string(status);
    return "signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
  }
};

// A child of this process. Destroyed while it runs, it is killed. Thread safety: none; several threads may each have
// one.
class child_process {
 public:
  // Makes one by fork: a copy of this process that calls work(), and ends with status 0 when that returns. No exit
  // handler runs, and an exception that leaves `work` aborts it. REQUIRES: as for in_child_process. Throws
  // pmlab::error: no process can be made.
  template <class Work>
  [[nodiscard]] static child_process forked(Work&& work) {
    const pid_t id = ::fork();
    if (id < 0) throw error(std::string("cannot start a process: ") + std::strerror(errno), "close other programs");
    if (id != 0) return child_process(id);
    [&work]() noexcept { std::forward<Work>(work)(); }();
    ::_exit(0);
  }

  // As forked, of a process that is of no use without this one: it is killed when the calling thread ends, also if that
  // was before its first step.
  template <class Work>
  [[nodiscard]] static child_process forked_for_its_parent(Work&& work) {
    const pid_t parent = ::getpid();
    return forked([&] {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      // The signal comes only from an end that is still ahead.
      if (::getppid() != parent) ::raise(SIGKILL);
      std::forward<Work>(work)();
    });
  }

  // Runs the program at path `file`, whose arguments are `words`, its own name first. It ends with status 127 where it
  // cannot be run. Throws pmlab::error: no process can be made.
  [[nodiscard]] static child_process of_program(const std::string& file, std::vector<std::string> words) {
    // Between fork and exec nothing may be called that allocates.
    std::vector<char*> pointers;
    pointers.reserve(words.size() + 1);
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return forked([&] {
      constexpr int cannot_be_run = 127;
      ::execv(file.c_str(), pointers.data());
      ::_exit(cannot_be_run);
    });
  }

  // `other` is left without a process.
  child_process(child_process&& other) noexcept : id_(std::exchange(other.id_, 0)), reason_(other.reason_) {}
  // Both exchange their processes.
  child_process& operator=(child_process&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(reason_, other.reason_);
    return *this;
  }
  ~child_process() {
    if (id_ == 0 || reason_) return;
    kill();
    static_cast<void>(wait());
  }

  // The reason of its end, or std::nullopt while it runs. Does not wait.
  [[nodiscard]] std::optional<exit_reason> ended() {
    if (!reason_) ask(WNOHANG);
    return reason_;
  }
  // Waits until it ends.
  [[nodiscard]] exit_reason wait() {
    while (!reason_) ask(0);
    return *reason_;
  }
  // Kills it, if it runs: it ends by SIGKILL, though not at once.
  void kill() noexcept {
    if (!reason_) ::kill(id_, SIGKILL);
  }

 private:
  explicit child_process(pid_t id) noexcept : id_(id) {}

  void ask(int options) {
    int status = 0;
    if (::waitpid(id_, &status, options) != id_) return;
    reason_ = WIFSIGNALED(status) ? exit_reason{WTERMSIG(status), 0} : exit_reason{0, WEXITSTATUS(status)};
  }

  pid_t id_;  // 0: moved from
  std::optional<exit_reason> reason_;
};

// How work in a child process ended.
struct child_end {
  // returned: its work returned, and `text` is the result; threw: an exception left it, and `text` is its message;
  // signalled: a signal ended it, such as SIGSEGV; late: it was killed at its time limit; vanished: it ended by itself.
  enum class how : std::uint8_t { returned, threw, signalled, late, vanished };
  how end = how::vanished;  // which of them
  int signal = 0;           // signal that ended the process
  std::string text;         // what a process that returned or threw has said

  // A clause for a message: "it was killed after 3 s".
  [[nodiscard]] std::string describe() const {
    switch (end) {
      case how::returned: return "returned: " + text;
      case how::threw: return "threw: " + text;
      case how::signalled: return "died of " + exit_reason{signal, 0}.text();
      case how::late: return "was killed: its time was over";
      case how::vanished: break;
    }
    return "ended by itself";
  }
};

// The stderr of work in a child process: libraries print there before they abort.
enum class child_stderr : std::uint8_t { lost, kept };

namespace detail {

// The first character of the answer of a child.
inline constexpr char child_returned = 'a', child_threw = 'r';

inline void be_child(int to, const std::function<std::string()>& work, child_stderr complaints) {
  // A handler of the parent's would report a fault as the parent's.
  for (const int fatal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL}) ::signal(fatal, SIG_DFL);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  if (complaints == child_stderr::lost)
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

// Runs `work` in a child process made by fork, and kills it if it takes longer than `limit`. Every change that it makes
// to memory is lost. REQUIRES: no other thread of this process holds a lock that `work` needs; for locks of libc and
// libpmemobj this holds only in a process of one thread (with more, the child may wait for a lock for ever, and ends
// late). Throws pmlab::error if no process can be made.
[[nodiscard]] inline child_end in_child_process(std::chrono::milliseconds limit,
                                                const std::function<std::string()>& work,
                                                child_stderr complaints = child_stderr::lost) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0)
    throw error(std::string("cannot make a pipe: ") + std::strerror(errno), "close other programs");
  const descriptor from(ends[0]);
  descriptor to(ends[1]);
  child_process child = child_process::forked_for_its_parent([&] { detail::be_child(to.get(), work, complaints); });
  to = descriptor();
  std::string said;
  const bool in_time = detail::read_from_child(from.get(), std::chrono::steady_clock::now() + limit, said);
  if (!in_time) child.kill();
  const exit_reason reason = child.wait();
  if (!in_time) return {child_end::how::late, 0, {}};
  if (reason.signal != 0) return {child_end::how::signalled, reason.signal, {}};
  if (said.empty()) return {child_end::how::vanished, 0, {}};
  const bool returned = said.front() == detail::child_returned;
  return {returned ? child_end::how::returned : child_end::how::threw, 0, said.substr(1)};
}

}  // namespace pmlab
