// A crash of a third-party library.
#include "checker/verify/crashed_process.hpp"
#include "checker/simulator/machine/machine.hpp"
#include "checker/verify/shared_text.hpp"
#include <pmlab/base/child_process.hpp>

#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>

#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

namespace pmlab::verify {
namespace {

// As in child_run.cpp: how long a recovery may compute, and how long it may take.
constexpr itimerval computing_patience{{}, {2, 0}};
constexpr unsigned waiting_patience = 4;
using child_text = shared_text<16384>;

child_text& text_of_child() {
  static void* const area =
      ::mmap(nullptr, sizeof(child_text), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) throw std::runtime_error("cannot map shared memory");
  return *static_cast<child_text*>(area);
}

[[noreturn]] void end_child(const std::string& wrong) {
  text_of_child().put(wrong);
  ::_exit(0);
}

void recover_from(simulator::persistent_memory& memory, std::span<const std::uint32_t> choice,
                  const std::function<std::string()>& recover) {
  simulator::the_machine().on_violation = [](const std::string& what) { end_child(what); };
  for (const int fatal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGALRM, SIGPROF}) ::signal(fatal, SIG_DFL);
  ::alarm(waiting_patience);
  ::setitimer(ITIMER_PROF, &computing_patience, nullptr);
  std::string wrong;
  try {
    memory.crash(choice);
    wrong = recover();
  } catch (const std::exception& e) {
    wrong = std::string("recovery, or an operation after it, throws: ") + e.what();
  }
  end_child(wrong);
}

}  // namespace

std::string in_crashed_process(simulator::persistent_memory& memory, std::span<const std::uint32_t> choice,
                               const std::function<std::string()>& recover) {
  child_text& text = text_of_child();
  text.put("");
  std::optional<child_process> child;
  simulator::the_machine().as_first_thread(
      [&] { child = child_process::forked([&] { recover_from(memory, choice, recover); }); });
  const exit_reason reason = child->wait();
  if (reason.signal == SIGALRM || reason.signal == SIGPROF)
    return "recovery, or an operation after it, hangs: a lock that the crash left held?";
  if (reason.signal != 0)
    return std::string("recovery, or an operation after it, faults: ") + ::strsignal(reason.signal);
  if (reason.status != 0) return "recovery ends the process with status " + std::to_string(reason.status);
  return text.get();
}

}  // namespace pmlab::verify
