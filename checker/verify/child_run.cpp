// Rounds in a child process.
#include "checker/verify/child_run.hpp"
#include "checker/simulator/machine/code_address.hpp"
#include "checker/verify/prefix_round.hpp"
#include "checker/verify/shared_text.hpp"
#include "checker/verify/volume_round.hpp"
#include <pmlab/base/child_process.hpp>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

namespace pmlab::verify {
namespace {

using clock = std::chrono::steady_clock;

constexpr int violated_status = 3;
constexpr std::size_t text_bytes = std::size_t{64} << 10;
// How long nothing may happen: computing, and waiting. A process that gets little of a busy machine computes slowly, so
// the first is its own processor time.
constexpr double computing_patience = 2;  // on_tick names both
constexpr double waiting_patience = 5;
constexpr double tick_seconds = 0.25;

// Memory shared by child and parent.
struct shared_board {
  round_counts counts;
  std::uint64_t round = 0;  // the number of the one that is on
  shared_text<text_bytes> text;
  shared_text<text_bytes> history;  // a line for each operation
};

shared_board* board = nullptr;
std::uint64_t last_progress = 0;
double processor_at_progress = 0;
unsigned ticks_without_progress = 0;

// Not by clock_gettime: the machine has a clock of its own.
double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

[[noreturn]] void end_child(const std::string& what) {
  board->text.put(what);
  ::_exit(violated_status);
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

std::string where(const void* pc) { return " at " + simulator::code_address(pc); }

const void* program_counter(void* context) {
  return reinterpret_cast<const void*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
}

// Not everything below is safe in a signal handler; the process ends with it, and a further error is a fault too.
void on_fault(int signal, siginfo_t* info, void* context) {
  ::signal(signal, SIG_DFL);
  char text[96];
  std::snprintf(text, sizeof text, "%s (address %p)", ::strsignal(signal), info->si_addr);
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const auto* const heap = simulator::the_machine().dram();
  const bool of_before = simulator::persistent_memory::in_area(address) || (heap != nullptr && heap->contains(address));
  end_child(std::string("fault: ") + text +
            (of_before ? ", an address of before the crash that was stored in PM" : "") +
            where(program_counter(context)) + simulator::the_machine().positions());
}

void on_tick(int /*signal*/, siginfo_t* /*info*/, void* context) {
  const std::uint64_t progress =
      board->counts.rounds + board->counts.crash.judged + simulator::the_machine().accesses();
  const double processor = processor_seconds();
  if (progress != last_progress) {
    last_progress = progress;
    processor_at_progress = processor;
    ticks_without_progress = 0;
    return;
  }
  ++ticks_without_progress;
  const bool computes = processor - processor_at_progress >= computing_patience;
  if (!computes && ticks_without_progress * tick_seconds < waiting_patience) return;
  end_child((computes ? "hang: 2 s of computing without progress" : "hang: 5 s without progress") +
            std::string("; a lock that a crash left held?") + where(program_counter(context)));
}

void watch_over_child() {
  static std::array<char, 1 << 16> stack;
  stack_t alternative{};
  alternative.ss_sp = stack.data();
  alternative.ss_size = stack.size();
  ::sigaltstack(&alternative, nullptr);
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  action.sa_sigaction = on_fault;
  for (const int fatal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) ::sigaction(fatal, &action, nullptr);
  action.sa_sigaction = on_tick;
  action.sa_flags |= SA_RESTART;
  ::sigaction(SIGALRM, &action, nullptr);
  constexpr timeval tick{0, static_cast<suseconds_t>(tick_seconds * 1e6)};
  const itimerval every_tick{tick, tick};
  ::setitimer(ITIMER_REAL, &every_tick, nullptr);
}

std::unique_ptr<runner> make_runner(const subject& kind) {
  if (kind.volume != nullptr) return std::make_unique<volume_runner>(kind, board->counts, end_child);
  if (kind.prefix != nullptr) return std::make_unique<prefix_runner>(kind, board->counts, end_child);
  return std::make_unique<round_runner>(kind, board->counts, end_child);
}

// The first round of a process does one-time work (statics, first uses of libraries), and so has other schedules than
// the same round later on. So that any round can be replayed alone, all are preceded by this one.
void warm_up(runner& rounds, round_options like) {
  const round_counts none = board->counts;
  like.operations = 4;
  like.grown = like.thin = like.loaded = like.full = false;
  like.reopenings = 0;
  like.crashes = false;
  like.steps.clear();
  rounds.run(like);
  board->counts = none;
}

void run_rounds(const subject& kind, const std::function<bool(std::uint64_t, round_options&)>& next, double seconds) {
  // Rounds that are lost to their program would go on for the whole budget.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  watch_over_child();
  simulator::the_machine().on_violation = [](const std::string& what) { end_child(what); };
  const auto start = clock::now();
  try {
    const std::unique_ptr<runner> rounds = make_runner(kind);
    rounds->on_history = [](const std::string& history) { board->history.put(history); };
    round_options options;
    if (next(0, options)) warm_up(*rounds, options);
    for (std::uint64_t number = 0; next(number, options); ++number) {
      if (std::chrono::duration<double>(clock::now() - start).count() >= seconds) break;
      board->round = number;
      rounds->run(options);
    }
  } catch (const std::exception& e) {
    end_child(std::string("an operation throws: ") + e.what());
  }
}

}  // namespace

child_outcome run_rounds_in_child(const subject& kind, const std::function<bool(std::uint64_t, round_options&)>& next,
                                  double seconds, round_counts& counts,
                                  const std::function<void(const round_counts&)>& tick) {
  void* const area = ::mmap(nullptr, sizeof(shared_board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) throw std::runtime_error("cannot map shared memory");
  board = ::new (area) shared_board;
  board->counts = counts;
  std::fflush(nullptr);
  child_process child = child_process::forked([&] { run_rounds(kind, next, seconds); });
  const auto deadline = clock::now() + std::chrono::duration<double>(seconds + 4 * waiting_patience);
  bool killed = false;
  while (!child.ended()) {
    if (clock::now() > deadline && !killed) {
      killed = true;
      child.kill();
    }
    if (tick) tick(board->counts);
    ::usleep(tick ? 50'000 : 2'000);
  }
  const exit_reason reason = child.wait();
  child_outcome outcome;
  next(board->round, outcome.round);
  outcome.history = lines_of(board->history.get());
  counts = board->counts;
  if (killed) {
    outcome.violated = true;
    outcome.what = "hang: the process was killed";
  } else if (reason.signal != 0) {
    outcome.violated = true;
    outcome.what = std::string("the process died: ") + ::strsignal(reason.signal);
  } else if (reason.status != 0) {
    outcome.violated = true;
    outcome.what = board->text.get();
    if (outcome.what.empty()) outcome.what = "the process ended with status " + std::to_string(reason.status);
  }
  ::munmap(area, sizeof(shared_board));
  board = nullptr;
  return outcome;
}

}  // namespace pmlab::verify
