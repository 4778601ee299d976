// The program's stores: each faults, and is then executed alone.
//
// A store to the pool raises SIGSEGV. The handler opens the page and sets the processor's trap flag, so that exactly
// this instruction is executed and raises SIGTRAP. That handler records the words that differ, and closes the page. A
// store of another thread to the open page, in this short time, is recorded with it: no store is lost, only its place
// in the order.
#include "checker/programs/recorder/steps.hpp"

#include "checker/programs/recorder/flush_code.hpp"
#include "checker/programs/recorder/log.hpp"
#include "checker/programs/recorder/pool.hpp"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include <dlfcn.h>
#include <ucontext.h>

#define PMLAB_EXPORT extern "C" __attribute__((visibility("default")))

namespace pmlab::programs::recorder {
namespace {

using sigaction_function = int (*)(int, const struct sigaction*, struct sigaction*);

sigaction_function real_sigaction() noexcept {
  static sigaction_function found = nullptr;
  if (found == nullptr) found = reinterpret_cast<sigaction_function>(::dlsym(RTLD_NEXT, "sigaction"));
  return found;
}

constexpr greg_t trap_flag = 0x100;
constexpr greg_t write_fault = 2;

// The step of the thread that has the lock.
bool is_stepping = false;
std::uintptr_t stepped = 0;  // the instruction
bool streaming = false;
std::uint32_t stack = 0;
sigset_t mask_before;

// The program's own handlers of these signals.
struct sigaction of_program[2];  // SIGSEGV, SIGTRAP

struct sigaction& program_handler(int signal) noexcept {
  return of_program[signal == SIGSEGV ? 0 : 1];
}

void pass_on(int signal, siginfo_t* info, void* context) noexcept {
  const struct sigaction& handler = program_handler(signal);
  if ((handler.sa_flags & SA_SIGINFO) != 0 && handler.sa_sigaction != nullptr) {
    handler.sa_sigaction(signal, info, context);
    return;
  }
  if (handler.sa_handler != SIG_DFL && handler.sa_handler != SIG_IGN) {
    handler.sa_handler(signal);
    return;
  }
  // The instruction is executed again, and the signal ends the program.
  struct sigaction none {};
  none.sa_handler = SIG_DFL;
  real_sigaction()(signal, &none, nullptr);
}

// movnti, movntps, movntpd, movntq, movntdq, and their vector forms.
bool is_streaming(const unsigned char* c) noexcept {
  for (int i = 0; i < 4 && (*c == 0x66 || *c == 0xf2 || *c == 0xf3 || (*c & 0xf0) == 0x40); ++i) ++c;
  const auto vector_store = [](unsigned char operation) { return operation == 0xe7 || operation == 0x2b; };
  if (c[0] == 0x0f) return c[1] == 0xc3 || vector_store(c[1]);
  if (c[0] == 0xc5) return vector_store(c[2]);
  if (c[0] == 0xc4) return (c[1] & 0x1f) == 1 && vector_store(c[3]);
  if (c[0] == 0x62) return (c[1] & 0x07) == 1 && vector_store(c[4]);
  return false;
}

void on_fault(int signal, siginfo_t* info, void* data) noexcept {
  ucontext_t& context = *static_cast<ucontext_t*>(data);
  const bool write = (context.uc_mcontext.gregs[REG_ERR] & write_fault) != 0;
  lock();
  if (info->si_code <= 0 || !write || !holds(info->si_addr)) {
    unlock();
    pass_on(signal, info, data);
    return;
  }
  if (is_stepping) {  // it stores to a further page
    unlock();
    open_page(info->si_addr);
    return;
  }
  is_stepping = true;
  stepped = static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
  streaming = is_streaming(reinterpret_cast<const unsigned char*>(stepped));
  stack = this_stack(stepped);
  open_page(info->si_addr);
  // No other handler of the program may run before the step.
  mask_before = context.uc_sigmask;
  sigfillset(&context.uc_sigmask);
  sigdelset(&context.uc_sigmask, SIGSEGV);
  sigdelset(&context.uc_sigmask, SIGTRAP);
  context.uc_mcontext.gregs[REG_EFL] |= trap_flag;
}

void on_trap(int signal, siginfo_t* info, void* data) noexcept {
  ucontext_t& context = *static_cast<ucontext_t*>(data);
  if (!(has_lock() && is_stepping)) {
    if (!take_breakpoint(context)) pass_on(signal, info, data);
    return;
  }
  // A repeated instruction traps after each repetition, and may go on through many pages.
  if (static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]) == stepped) {
    if (are_almost_all_open())
      close_pages(streaming, stack);
    else
      record_changes(streaming, stack);
    return;
  }
  close_pages(streaming, stack);
  is_stepping = false;
  context.uc_mcontext.gregs[REG_EFL] &= ~trap_flag;
  context.uc_sigmask = mask_before;
  unlock();
}

}  // namespace

// A fault whose signal is blocked ends the program.
static sigset_t without_own(sigset_t set) noexcept {
  sigdelset(&set, SIGSEGV);
  sigdelset(&set, SIGTRAP);
  return set;
}

void watch_stores() noexcept {
  struct sigaction own {};
  own.sa_flags = SA_SIGINFO;
  sigfillset(&own.sa_mask);
  sigdelset(&own.sa_mask, SIGSEGV);
  sigdelset(&own.sa_mask, SIGTRAP);
  own.sa_sigaction = on_fault;
  real_sigaction()(SIGSEGV, &own, &of_program[0]);
  own.sa_sigaction = on_trap;
  real_sigaction()(SIGTRAP, &own, &of_program[1]);
}

}  // namespace pmlab::programs::recorder

using pmlab::programs::recorder::is_recording;

PMLAB_EXPORT int sigaction(int signal, const struct sigaction* wanted, struct sigaction* before) {
  using namespace pmlab::programs::recorder;
  if (!is_recording() || (signal != SIGSEGV && signal != SIGTRAP)) {
    if (!is_recording() || wanted == nullptr) return real_sigaction()(signal, wanted, before);
    struct sigaction open = *wanted;
    open.sa_mask = without_own(open.sa_mask);
    return real_sigaction()(signal, &open, before);
  }
  struct sigaction& kept = program_handler(signal);
  if (before != nullptr) *before = kept;
  if (wanted != nullptr) kept = *wanted;
  return 0;
}

PMLAB_EXPORT sighandler_t signal(int number, sighandler_t wanted) {
  struct sigaction action {
  }, before{};
  action.sa_handler = wanted;
  action.sa_flags = SA_RESTART;
  return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

PMLAB_EXPORT int pthread_sigmask(int how, const sigset_t* wanted, sigset_t* before) noexcept {
  using namespace pmlab::programs::recorder;
  using function = int (*)(int, const sigset_t*, sigset_t*);
  static function real = nullptr;
  if (real == nullptr) real = reinterpret_cast<function>(::dlsym(RTLD_NEXT, "pthread_sigmask"));
  if (!is_recording() || wanted == nullptr || how == SIG_UNBLOCK) return real(how, wanted, before);
  const sigset_t open = without_own(*wanted);
  return real(how, &open, before);
}

PMLAB_EXPORT int sigprocmask(int how, const sigset_t* wanted, sigset_t* before) noexcept {
  const int failed = pthread_sigmask(how, wanted, before);
  if (failed == 0) return 0;
  errno = failed;
  return -1;
}
