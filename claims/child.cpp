// Another program, run to its end.
#include <pmlab/claims/child.hpp>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pmlab::claims {
namespace {

constexpr mode_t file_mode = 0644;

}  // namespace

interrupts_ignored::interrupts_ignored() {
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGINT, &ignore, &before_);
}

interrupts_ignored::~interrupts_ignored() { ::sigaction(SIGINT, &before_, nullptr); }

int run_program(const std::vector<std::string>& words, const std::string& output, complaints to) {
  std::vector<std::string> copy = words;
  std::vector<char*> pointers;
  pointers.reserve(copy.size() + 1);
  for (std::string& word : copy) pointers.push_back(word.data());
  pointers.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t interrupt;
  ::sigemptyset(&interrupt);
  ::sigaddset(&interrupt, SIGINT);
  ::posix_spawn_file_actions_init(&actions);
  if (!output.empty())
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                       file_mode);
  if (to == complaints::to_output) ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setsigdefault(&attributes, &interrupt);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);

  const interrupts_ignored until_it_ends;
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, pointers.front(), &actions, &attributes, pointers.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (failed != 0)
    throw error(fmt::format("cannot run {}: {}", words.front(), std::strerror(failed)), "check that it is installed");
  int status = 0;
  while (::waitpid(child, &status, 0) == -1 && errno == EINTR) {
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) throw interrupted();
  if (WIFSIGNALED(status))
    throw error(fmt::format("{} was ended by signal {}", words.front(), WTERMSIG(status)), "run it again");
  return WEXITSTATUS(status);
}

bool has_program(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access(folder.append("/").append(name).c_str(), X_OK) == 0) return true;
  return false;
}

}  // namespace pmlab::claims
