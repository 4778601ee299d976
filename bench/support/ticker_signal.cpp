// Ticks from SIGALRM: in the program that has the simulated machine. The handler runs between two instructions of the
// simulation, on a stack of its own, and so changes nothing that the machine sees.
#include "bench/support/ticker.hpp"

#include <array>
#include <atomic>
#include <cerrno>

#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

namespace pmlab::bench {
namespace {

std::atomic<void (*)(void*)> current_tick{nullptr};
std::atomic<void*> current_context{nullptr};
std::atomic<int> handlers{0};  // that run
alignas(64) std::array<char, std::size_t{1} << 16> handler_stack;

void on_alarm(int /*signal*/) {
  const int before = errno;
  // Counted first, so that a handler which finds a tick is waited for.
  handlers.fetch_add(1);
  if (auto* const tick = current_tick.load()) tick(current_context);
  handlers.fetch_sub(1);
  errno = before;
}

void ring_every(suseconds_t microseconds) {
  const itimerval period{{0, microseconds}, {0, microseconds}};
  ::setitimer(ITIMER_REAL, &period, nullptr);
}

}  // namespace

struct ticker::running {
  struct sigaction action_before {};
  stack_t stack_before{};
};

double real_seconds() noexcept {
  constexpr double nanosecond = 1e-9;
  timespec now{};
  // The C library's function is the machine's here.
  long result = SYS_clock_gettime;
  asm volatile("syscall" : "+a"(result) : "D"(CLOCK_MONOTONIC), "S"(&now) : "rcx", "r11", "memory");
  return static_cast<double>(now.tv_sec) + nanosecond * static_cast<double>(now.tv_nsec);
}

ticker::ticker(void (*tick)(void*), void* context) : running_(std::make_unique<running>()) {
  current_context = context;
  current_tick = tick;
  stack_t stack{};
  stack.ss_sp = handler_stack.data();
  stack.ss_size = handler_stack.size();
  ::sigaltstack(&stack, &running_->stack_before);
  struct sigaction action {};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_ONSTACK | SA_RESTART;
  ::sigaction(SIGALRM, &action, &running_->action_before);
  ring_every(200'000);
}

ticker::~ticker() {
  ring_every(0);
  // A ring may still wait for another thread, which a busy machine has not let run. Ignoring it discards it; the action
  // of before would end the process.
  struct sigaction ignored {};
  ignored.sa_handler = SIG_IGN;
  ::sigaction(SIGALRM, &ignored, nullptr);
  ::sigaction(SIGALRM, &running_->action_before, nullptr);
  ::sigaltstack(&running_->stack_before, nullptr);
  // The handler may run in another thread, which took the signal before. The machine has no part in this wait.
  current_tick = nullptr;
  while (handlers.load() != 0) __builtin_ia32_pause();
}

}  // namespace pmlab::bench
