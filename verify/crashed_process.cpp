// A crash as it happens to somebody's library.
#include <pmlab/simulator/machine/machine.hpp>
#include <pmlab/verify/crashed_process.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <stdexcept>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pmlab::verify {
namespace {

constexpr unsigned patience_seconds = 4;
using shared_text = std::array<char, 16384>;

shared_text& text_of_child() {
  static auto* const text = static_cast<shared_text*>(
      ::mmap(nullptr, sizeof(shared_text), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (text == MAP_FAILED) throw std::runtime_error("cannot map shared memory");
  return *text;
}

void put(shared_text& text, const std::string& what) {
  const std::size_t bytes = std::min(what.size(), text.size() - 1);
  std::memcpy(text.data(), what.data(), bytes);
  text[bytes] = '\0';
}

[[noreturn]] void child(simulator::persistent_memory& memory, std::span<const std::uint32_t> choice,
                        const std::function<std::string()>& recover, shared_text& text) {
  static shared_text* shown = nullptr;
  shown = &text;
  simulator::the_machine().on_violation = [](const std::string& what) {
    put(*shown, what);
    ::_exit(0);
  };
  for (const int fatal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM}) ::signal(fatal, SIG_DFL);
  ::alarm(patience_seconds);
  std::string wrong;
  try {
    memory.crash(choice);
    wrong = recover();
  } catch (const std::exception& e) {
    wrong = std::string("recovery, or an operation after it, throws: ") + e.what();
  }
  put(text, wrong);
  ::_exit(0);
}

}  // namespace

std::string in_crashed_process(simulator::persistent_memory& memory, std::span<const std::uint32_t> choice,
                               const std::function<std::string()>& recover) {
  shared_text& text = text_of_child();
  text[0] = '\0';
  pid_t id = -1;
  simulator::the_machine().as_first_thread([&] {
    id = ::fork();
    if (id == 0) child(memory, choice, recover, text);
  });
  if (id < 0) throw std::runtime_error(std::string("cannot start a process: ") + std::strerror(errno));
  int status = 0;
  while (::waitpid(id, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status)) {
    if (WTERMSIG(status) == SIGALRM)
      return "recovery, or an operation after it, hangs: a lock that the crash left held?";
    return std::string("recovery, or an operation after it, faults: ") + ::strsignal(WTERMSIG(status));
  }
  if (WEXITSTATUS(status) != 0) return "recovery ends the process with status " + std::to_string(WEXITSTATUS(status));
  return text.data();
}

}  // namespace pmlab::verify
