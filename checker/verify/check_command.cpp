// A check of crash states by a command.
#include "checker/verify/check_command.hpp"

#include <pmlab/base/error.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;  // NOLINT: the C library's

namespace pmlab::verify {
namespace {

constexpr int server_requests = 198, server_answers = 199;
constexpr int timed_out = 124;
constexpr int own_failure = 125, not_executable = 126, not_found = 127;
constexpr int least_of_signals = 128;  // least of a shell's statuses that name signals

// Those that there are, as a handler of signals may read them.
std::array<std::atomic<const char*>, 1024> scratch_paths{};

// They would make their files again. Called in a signal's handler.
void end_children() noexcept {
  std::array<char, 4096> text;
  const int list = ::open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
  if (list < 0) return;
  const ssize_t length = ::read(list, text.data(), text.size());
  ::close(list);
  pid_t child = 0;
  for (ssize_t i = 0; i < length; ++i) {
    if (text[static_cast<std::size_t>(i)] != ' ') {
      child = child * 10 + (text[static_cast<std::size_t>(i)] - '0');
      continue;
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    child = 0;
  }
}

void remove_scratch_files(int signal) {
  end_children();
  for (const std::atomic<const char*>& one : scratch_paths)
    if (const char* const path = one.load(); path != nullptr) ::unlink(path);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

// A command of plain words needs no shell, whose start takes longer than a small check.
std::vector<std::string> plain_words(const std::string& command) {
  if (command.find_first_of("|&;<>()$`\\\"'*?[]#~=%!{}\n") != std::string::npos) return {};
  std::istringstream text(command);
  return {std::istream_iterator<std::string>(text), {}};
}

}  // namespace

scratch_file::scratch_file(const std::string& suffix) {
  namespace fs = std::filesystem;
  static std::atomic<unsigned> number{0};
  const char* const given = std::getenv("TMPDIR");
  const fs::path folder = given != nullptr ? fs::path(given) : fs::is_directory("/dev/shm") ? "/dev/shm" : "/tmp";
  path_ = (folder / ("pmlab-" + std::to_string(::getpid()) + "-" + std::to_string(++number) + suffix)).string();
  static_cast<void>(remove_too(path_.c_str()));
}

bool scratch_file::remove_too(const char* path) {
  for (std::atomic<const char*>& one : scratch_paths)
    if (const char* none = nullptr; one.compare_exchange_strong(none, path)) return true;
  return false;
}

scratch_file::~scratch_file() {
  std::remove(path_.c_str());
  for (std::atomic<const char*>& one : scratch_paths)
    if (one.load() == path_.c_str()) one.store(nullptr);
}

void scratch_file::remove_on_signals() {
  struct sigaction removal {};
  removal.sa_handler = &remove_scratch_files;
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    struct sigaction before {};
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL)
      ::sigaction(signal, &removal, nullptr);
  }
}

std::string last_part(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  while (!text.empty() && text.back() == '\n') text.pop_back();
  constexpr std::size_t most = 2000;
  return text.size() <= most ? text : "..." + text.substr(text.size() - most);
}

std::string check_command::with_path(std::string command, const std::string& path) {
  constexpr std::string_view place = "{}";
  if (command.find(place) == std::string::npos) return command + " '" + path + "'";
  for (std::size_t at = command.find(place); at != std::string::npos; at = command.find(place, at + path.size()))
    command.replace(at, place.size(), path);
  return command;
}

check_command::check_command(const std::string& command, std::string image, double seconds, std::string server)
    : command_(command),
      image_(std::move(image)),
      seconds_(seconds),
      words_(plain_words(command)),
      server_(std::move(server)) {
  // Where it is ignored, as a parent process may have left it, the status of a check is lost.
  std::signal(SIGCHLD, SIG_DFL);
  if (words_.empty()) {
    words_ = {"sh", "-c", with_path(command, image_)};
    server_.clear();
  } else {
    words_.push_back(image_);
  }
}

check_command::~check_command() { end_child(); }

void check_command::end_child() noexcept {
  runs_ = false;
  if (child_ == 0) return;
  ::kill(-child_, SIGKILL);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) continue;
  child_ = 0;
}

void check_command::spawn(bool as_server) {
  ::setenv("PMLAB_IO_MARKS", marks_file_.path().c_str(), 1);
  std::array<int, 2> requests{-1, -1}, answers{-1, -1};
  std::vector<std::string> variables;
  for (char** v = environ; *v != nullptr; ++v) variables.emplace_back(*v);
  if (as_server) {
    if (::pipe2(requests.data(), O_CLOEXEC) != 0 || ::pipe2(answers.data(), O_CLOEXEC) != 0)
      throw error(std::string("cannot make a pipe: ") + std::strerror(errno), "close other programs");
    // Numbers that the child's files have.
    variables.push_back("PMLAB_CHECK_SERVER=" + std::to_string(server_requests) + "," + std::to_string(server_answers));
    variables.push_back("LD_PRELOAD=" + server_);
  }
  std::vector<char*> words, environment;
  for (std::string& word : words_) words.push_back(word.data());
  words.push_back(nullptr);
  for (std::string& v : variables) environment.push_back(v.data());
  environment.push_back(nullptr);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output_.path().c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  if (as_server) {
    posix_spawn_file_actions_adddup2(&files, requests[0], server_requests);
    posix_spawn_file_actions_adddup2(&files, answers[1], server_answers);
  }
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // it is killed with its children
  posix_spawnattr_setpgroup(&attributes, 0);
  const int failed = ::posix_spawnp(&child_, words[0], &files, &attributes, words.data(), environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&files);
  if (as_server) {
    ::close(requests[0]);
    ::close(answers[1]);
    requests_ = descriptor(requests[1]);
    ended_ = descriptor(answers[0]);
  }
  if (failed != 0) {
    child_ = 0;
    throw error("the check cannot be run: " + command_ + ": " + std::strerror(failed), "name a program that exists");
  }
  if (!as_server) ended_ = descriptor(static_cast<int>(::syscall(SYS_pidfd_open, child_, 0)));
}

// False: the check cannot be served: it is a script, or linked statically, or ends before main.
bool check_command::serve() {
  if (child_ == 0) {
    spawn(true);
    constexpr int patience_ms = 5000;
    pollfd ready{ended_.get(), POLLIN, 0};
    int status = 0;
    if (::poll(&ready, 1, patience_ms) != 1 ||
        ::read(ended_.get(), &status, sizeof(status)) != static_cast<ssize_t>(sizeof(status))) {
      end_child();
      return false;
    }
  }
  if (::truncate(output_.path().c_str(), 0) != 0) return false;
  return ::write(requests_.get(), "", 1) == 1;
}

void check_command::start(const std::vector<std::string>& marks) {
  {
    std::ofstream file(marks_file_.path(), std::ios::trunc);
    for (const std::string& m : marks) file << m << '\n';
  }
  marks_ = marks.size();
  if (!server_.empty() && !serve()) server_.clear();
  if (server_.empty()) spawn(false);
  runs_ = true;
  started_ = std::chrono::steady_clock::now();
}

void check_command::wait_for_one(const std::vector<check_command*>& checks) {
  std::vector<pollfd> files;
  for (const check_command* c : checks)
    if (c->runs()) files.push_back({c->ended_.get(), POLLIN, 0});
  constexpr int patience_ms = 100;
  // A kernel without such files makes poll return at once: then it is asked every millisecond.
  const bool known = std::none_of(files.begin(), files.end(), [](const pollfd& f) { return f.fd < 0; });
  ::poll(files.data(), known ? files.size() : 0, known ? patience_ms : 1);
}

std::optional<std::string> check_command::verdict() {
  int status = 0;
  bool ended = false;
  if (server_.empty()) {
    ended = ::waitpid(child_, &status, WNOHANG) != 0;
    if (ended) child_ = 0;
  } else if (pollfd answer{ended_.get(), POLLIN, 0}; ::poll(&answer, 1, 0) == 1) {
    ended = true;
    if (::read(ended_.get(), &status, sizeof(status)) != static_cast<ssize_t>(sizeof(status))) {
      end_child();
      throw error("the check ended its own server: " + command_, "let it kill no process but its own children");
    }
  }
  if (ended) {
    runs_ = false;
    return judge(status);
  }
  if (std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count() < seconds_)
    return std::nullopt;
  end_child();
  return judge(timed_out << 8);
}

std::string check_command::judge(int status) const {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  const std::string said = last_part(output_.path());
  if (WIFEXITED(status) && (WEXITSTATUS(status) == not_found || WEXITSTATUS(status) == not_executable))
    throw error("the check cannot be run: " + command_ + ": " + said, "name a program that exists");
  const auto give_up = [&](const std::string& how) {
    const std::string last = said.substr(said.find_last_of('\n') + 1);
    throw error("the check " + how + ", on a state after " + std::to_string(marks_) + " marks: " + command_ +
                    (last.empty() ? "" : ", whose last line is: " + last),
                "let it report a state that cannot be opened by its status, 1 to 123");
  };
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : least_of_signals + WTERMSIG(status);
  if (code == own_failure || code == least_of_signals)
    give_up("ended with status " + std::to_string(code) + ", which is no verdict");
  std::string how;
  if (code == timed_out) {
    std::array<char, 32> limit;
    std::snprintf(limit.data(), limit.size(), "%g", seconds_);
    how = std::string("did not end within ") + limit.data() + " s";
  } else if (code > least_of_signals) {
    const int signal = code - least_of_signals;
    how = "died of signal " + std::to_string(signal) + " (" + ::strsignal(signal) + ")";
    // By the system, say, where memory is short.
    if (signal == SIGKILL) give_up(how);
  } else {
    how = "ended with status " + std::to_string(code);
  }
  if (code >= timed_out && !works_) give_up(how);
  const std::string why = "the check " + how;
  return said.empty() ? why : why + ": " + said;
}

}  // namespace pmlab::verify
