// A crash of a third-party library.
#include "checker/verify/crashed_process.hpp"
#include "checker/simulator/machine/call_stack.hpp"
#include "checker/simulator/machine/code_address.hpp"
#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/machine/real.hpp"
#include "checker/verify/elapsed.hpp"
#include "checker/verify/shared_text.hpp"
#include "checker/verify/unable.hpp"
#include <pmlab/base/child_process.hpp>

#include <atomic>
#include <cstring>
#include <exception>
#include <optional>
#include <stdexcept>

#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

namespace pmlab::verify {
namespace {

using child_text = shared_text<16384>;

// Memory shared by child and parent, zero at first.
struct child_board {
  child_text text;
  std::atomic<pid_t> process;  // 0: none
  std::atomic<bool> faulted;
  std::atomic<bool> has_ended;  // by itself
};

child_board& board_of_child() {
  static void* const area =
      ::mmap(nullptr, sizeof(child_board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) throw std::runtime_error("cannot map shared memory");
  return *static_cast<child_board*>(area);
}

child_text& text_of_child() { return board_of_child().text; }

[[noreturn]] void end_recovery(const std::string& wrong) {
  text_of_child().put(wrong);
  board_of_child().has_ended = true;
  ::_exit(0);
}

// Not everything below is safe in a signal handler: what is known for sure is on the board first.
void on_fault_in_recovery(int signal, siginfo_t* /*info*/, void* context) {
  ::signal(signal, SIG_DFL);
  constexpr unsigned longest = 5;  // s
  ::alarm(longest);
  std::string text = std::string("recovery, or an operation after it, faults: ") + ::strsignal(signal);
  text_of_child().put(text);
  board_of_child().faulted = true;
  const auto* const at = reinterpret_cast<const void*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
  end_recovery(text + " at " + simulator::code_address(simulator::callers_of_interrupted(at)));
}

void recover_from(simulator::persistent_memory& memory, const std::function<void()>& crash,
                  const std::function<std::string()>& recover) {
  board_of_child().process = ::getpid();
  simulator::machine& machine = simulator::the_machine();
  machine.on_violation = [](const std::string& what) {
    const bool never_ends = what.starts_with("no end after") || what.starts_with("deadlock");
    end_recovery(
        (never_ends ? "recovery, or an operation after it, hangs: " : "during recovery, or an operation after it: ") +
        what);
  };
  for (const int fatal : {SIGALRM, SIGPROF}) ::signal(fatal, SIG_DFL);
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;  // the stack is the parent's (watch_over_child)
  action.sa_sigaction = on_fault_in_recovery;
  for (const int fatal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) ::sigaction(fatal, &action, nullptr);
  ::alarm(waiting_patience);
  const itimerval computing{{}, {computing_patience, 0}};
  ::setitimer(ITIMER_PROF, &computing, nullptr);
  std::string wrong;
  try {
    crash();
    machine.begin_in_copy({.access_limit = simulator::machine::patience});
    memory.observe(nullptr);
    memory.keep_log(false);
    machine.use(&memory);
    machine.watch(true);
    wrong = recover();
    machine.watch(false);
  } catch (const std::exception& e) {
    wrong = std::string("recovery, or an operation after it, throws: ") + thrown_text(e);
  }
  end_recovery(wrong);
}

}  // namespace

std::string in_crashed_process(simulator::persistent_memory& memory, const std::function<void()>& crash,
                               const std::function<std::string()>& recover) {
  child_text& text = text_of_child();
  text.put("");
  board_of_child().faulted = false;
  board_of_child().has_ended = false;
  std::optional<child_process> child;
  simulator::the_machine().as_first_thread([&] {
    const fork_permit permit;
    // One that waits for ever would outlive the search.
    child = child_process::forked_for_its_parent([&] { recover_from(memory, crash, recover); });
  });
  const exit_reason reason = child->wait();
  board_of_child().process = 0;
  if (board_of_child().faulted) return text.get();
  if (reason.signal == SIGALRM || reason.signal == SIGPROF)
    end_unable(
        std::string("a recovery, or an operation after it, ") +
            (reason.signal == SIGPROF ? "computes for 30 s without an end and without steps that the machine sees"
                                      : "waits for 60 s outside of the machine"),
        "build all of its code with scripts/pmlab-c++");
  if (reason.signal == SIGKILL) end_unable(was_killed, after_a_kill);
  if (reason.status == unable_status) ::_exit(unable_status);
  if (reason.signal != 0)
    return std::string("recovery, or an operation after it, faults: ") + ::strsignal(reason.signal);
  if (!board_of_child().has_ended)
    return "recovery, or an operation after it, ends the process with status " + std::to_string(reason.status);
  return text.get();
}

double seconds_of_crashed_process() {
  const pid_t process = board_of_child().process;
  clockid_t its_clock{};
  timespec used{};
  if (process == 0 || ::clock_getcpuclockid(process, &its_clock) != 0) return -1;
  // By the kernel's clock: the machine has one of its own.
  simulator::real::functions().clock_get(its_clock, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

}  // namespace pmlab::verify
