// Another program, run to its end.
#include "claims/child.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pmlab::claims {
namespace {

constexpr mode_t file_mode = 0644;
constexpr std::array<int, 2> passed_on = {SIGINT, SIGTERM};

// The process groups of the children. A signal handler may neither allocate nor lock: hence plain numbers.
std::array<std::atomic<pid_t>, 256>& groups() noexcept {
  static std::array<std::atomic<pid_t>, 256> of_children{};
  return of_children;
}
std::atomic<int> first_signal{0};

void pass_on(int signal) {
  const int before = errno;
  int none = 0;
  const bool again = !first_signal.compare_exchange_strong(none, signal);
  for (const std::atomic<pid_t>& group : groups())
    if (const pid_t g = group.load(); g != 0) ::kill(-g, again ? SIGKILL : signal);
  errno = before;
}

// Guards what follows.
std::mutex handlers;
std::size_t users = 0;
std::array<struct sigaction, passed_on.size()> before_us;

// A group that signals are passed on to.
class known_group {
 public:
  explicit known_group(pid_t group) noexcept {
    for (std::atomic<pid_t>& place : groups()) {
      pid_t none = 0;
      if (!place.compare_exchange_strong(none, group)) continue;
      place_ = &place;
      break;
    }
    // What came before it was known.
    if (const int signal = first_signal.load(); signal != 0) ::kill(-group, signal);
  }
  known_group(const known_group&) = delete;
  known_group& operator=(const known_group&) = delete;
  ~known_group() {
    if (place_ != nullptr) place_->store(0);
  }

 private:
  std::atomic<pid_t>* place_ = nullptr;
};

// In the child: between fork and exec nothing may be called that allocates or locks. Tells through `problem` why it came
// to nothing.
[[noreturn]] void become(char* const* words, const char* output, complaints to, pid_t parent, int problem) {
  ::setpgid(0, 0);
  // Where the parent is killed, the child is told to end; it may have pools to remove.
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(1);
  for (const int signal : passed_on) ::signal(signal, SIG_DFL);
  bool ready = true;
  if (output != nullptr) {
    const int file = ::open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, file_mode);
    ready = file >= 0 && ::dup2(file, STDOUT_FILENO) >= 0;
  }
  if (ready && to == complaints::to_output) ready = ::dup2(STDOUT_FILENO, STDERR_FILENO) >= 0;
  if (ready) ::execvp(words[0], words);
  const int number = errno;
  static_cast<void>(::write(problem, &number, sizeof number) == sizeof number);
  ::_exit(1);
}

// Throws pmlab::error: it cannot be run.
pid_t start(const std::vector<std::string>& words, const std::string& output, complaints to) {
  std::vector<std::string> copy = words;
  std::vector<char*> pointers;
  pointers.reserve(copy.size() + 1);
  for (std::string& word : copy) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::array<int, 2> problem{};
  if (::pipe2(problem.data(), O_CLOEXEC) != 0)
    throw error(fmt::format("cannot run {}: {}", words.front(), std::strerror(errno)), "close other programs");
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) become(pointers.data(), output.empty() ? nullptr : output.c_str(), to, parent, problem[1]);
  int number = child < 0 ? errno : 0;
  ::close(problem[1]);
  // Until exec closes the other end.
  while (child > 0 && ::read(problem[0], &number, sizeof number) == -1 && errno == EINTR) {
  }
  ::close(problem[0]);
  if (number == 0) return child;
  if (child > 0) ::waitpid(child, nullptr, 0);
  throw error(fmt::format("cannot run {}: {}", words.front(), std::strerror(number)), "check that it is installed");
}

}  // namespace

signals_for_children::signals_for_children() {
  const std::scoped_lock lock(handlers);
  if (users++ != 0) return;
  first_signal.store(0);
  groups();
  struct sigaction handler = {};
  handler.sa_handler = pass_on;
  handler.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < passed_on.size(); ++i) ::sigaction(passed_on[i], &handler, &before_us[i]);
}

signals_for_children::~signals_for_children() {
  const std::scoped_lock lock(handlers);
  if (--users != 0) return;
  for (std::size_t i = 0; i < passed_on.size(); ++i) ::sigaction(passed_on[i], &before_us[i], nullptr);
}

int stop_signal() noexcept { return first_signal.load(); }

int run_program(const std::vector<std::string>& words, const std::string& output, complaints to) {
  const signals_for_children until_it_ends;
  const pid_t child = start(words, output, to);
  {
    const known_group told(child);
    // Its number is its own until it is waited for below.
    siginfo_t ended{};
    while (::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == -1 && errno == EINTR) {
    }
  }
  int status = 0;
  while (::waitpid(child, &status, 0) == -1 && errno == EINTR) {
  }
  constexpr int ended_by = 128;  // as shells, and programs that put things back first, say it
  const int stopped = stop_signal();
  if (stopped != 0 && (WIFSIGNALED(status) || WEXITSTATUS(status) == ended_by + stopped)) throw interrupted(stopped);
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  if (WTERMSIG(status) == SIGINT) throw interrupted(SIGINT);
  throw error(fmt::format("{} was ended by signal {}", words.front(), WTERMSIG(status)), "run it again");
}

bool has_program(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access(folder.append("/").append(name).c_str(), X_OK) == 0) return true;
  return false;
}

}  // namespace pmlab::claims
