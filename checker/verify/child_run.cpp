// Rounds in a child process.
#include "checker/verify/child_run.hpp"
#include "checker/simulator/machine/call_stack.hpp"
#include "checker/simulator/machine/code_address.hpp"
#include "checker/simulator/machine/host_refusal.hpp"
#include "checker/simulator/machine/real.hpp"
#include "checker/verify/complete_explorer.hpp"
#include "checker/verify/crash_explorer.hpp"
#include "checker/verify/crashed_process.hpp"
#include "checker/verify/elapsed.hpp"
#include "checker/verify/hosts/host_objects.hpp"
#include "checker/verify/hosts/host_round.hpp"
#include "checker/verify/library_subject.hpp"
#include "checker/verify/prefix_round.hpp"
#include "checker/verify/reached_code.hpp"
#include "checker/verify/round.hpp"
#include "checker/verify/shared_text.hpp"
#include "checker/verify/silent_stdout.hpp"
#include "checker/verify/thrown.hpp"
#include "checker/verify/unable.hpp"
#include "checker/verify/volume_round.hpp"
#include <pmlab/base/child_process.hpp>

#include <algorithm>
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
#include <utility>
#include <vector>

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

namespace pmlab::verify {
namespace {

using clock = std::chrono::steady_clock;

constexpr int violated_status = 3;
constexpr int goes_on_status = 5;  // another process is to go on behind its last round
constexpr std::size_t text_bytes = std::size_t{64} << 10;
// Without a step, an access or a judged state for so long, something may hang: then a copy of the process counts steps.
// Processor time, because a process on a busy machine computes slowly; waiting takes none. Neither is a verdict.
constexpr double computing_suspicion = 0.5;
constexpr double waiting_suspicion = 1.5;
// So many times longer, each time that a suspicion was wrong.
constexpr double after_a_wrong_one = 4;
// Patience (elapsed.hpp) at the end of the budget.
constexpr double computing_at_end = 2;
constexpr double waiting_at_end = 5;
constexpr double tick_seconds = 0.25;

// Memory shared by child and parent.
struct shared_board {
  round_counts counts;
  std::uint64_t round = 0;  // the number of the one that is on
  std::uint64_t next = 0;   // that of the first round of the process that goes on
  bool each_alone = false;  // each round is one of a new process, and the first of it
  bool has_ended = false;   // the rounds have ended, or their time
  std::uint64_t steps_of_copy = 0;
  shared_text<text_bytes> text;
  shared_text<4096> remedy;
  shared_text<text_bytes> history;  // a line for each operation
};

shared_board* board = nullptr;
unsigned job = 0;
clock::time_point deadline_of_child;
double budget_of_child = 0;

// Since the last progress.
struct {
  std::uint64_t progress = 0;
  double processor = 0;
  unsigned ticks = 0;
  double suspicion = 1;     // times the constants above
  bool was_opened = false;  // a copy has opened the state on the machine, and it ends there
} still;

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

// The counts are on the board.
[[noreturn]] void end_in_time() {
  board->has_ended = true;
  ::_exit(0);
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

// The place of code that a signal has interrupted: the subject's, where the machine works for it.
std::string where(const void* pc) { return " at " + simulator::code_address(simulator::callers_of_interrupted(pc)); }

const void* program_counter(void* context) {
  return reinterpret_cast<const void*>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
}

// Not everything below is safe in a signal handler; the process ends with it, and a further error is a fault too.
void on_fault(int signal, siginfo_t* info, void* context) {
  ::signal(signal, SIG_DFL);
  complete_explorer::end_if_diverged();
  char text[96];
  std::snprintf(text, sizeof text, "%s (address %p)", ::strsignal(signal), info->si_addr);
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const auto* const heap = simulator::the_machine().dram();
  const bool of_before = simulator::persistent_memory::in_area(address) || (heap != nullptr && heap->contains(address));
  end_child(std::string("fault: ") + text +
            (of_before ? ", an address of before the crash that was stored in PM" : "") +
            where(program_counter(context)) + simulator::the_machine().positions());
}

// By the kernel's clock: the machine has one of its own.
clock::time_point real_now() {
  timespec now{};
  simulator::real::functions().clock_get(CLOCK_MONOTONIC, &now);
  return clock::time_point(std::chrono::duration_cast<clock::duration>(std::chrono::seconds(now.tv_sec) +
                                                                       std::chrono::nanoseconds(now.tv_nsec)));
}

[[noreturn]] void end_copy(const std::string& what) {
  const bool never_ends = what.starts_with("no end after") || what.starts_with("deadlock");
  board->text.put((never_ends ? "hang: recovery, or an operation after it: " : "") + what +
                  crash_explorer::opening()->circumstances());
  ::_exit(violated_status);
}

// In a copy of the process that was interrupted anywhere, the heap of the C library included: a fault in it shows
// nothing, so it ends like any other copy that does not get to a verdict.
[[noreturn]] void open_in_copy() {
  constexpr int faulted = 5;
  constexpr itimerval longest{{}, {60, 0}};
  for (const int fatal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) ::signal(fatal, [](int) { ::_exit(faulted); });
  ::setitimer(ITIMER_PROF, &longest, nullptr);
  simulator::the_machine().on_violation = [](const std::string& what) { end_copy(what); };
  const std::string wrong = crash_explorer::opening()->judge_in_copy(board->steps_of_copy);
  if (!wrong.empty()) end_copy(wrong);
  ::_exit(0);
}

// True: a copy has opened the state on the machine, where it ends. Does not return if it is a violation.
bool ends_on_machine() {
  pid_t copy = -1;
  {
    const fork_permit permit;
    copy = ::fork();
  }
  if (copy < 0) return false;
  if (copy == 0) open_in_copy();
  for (int status = 0;; ::usleep(2'000)) {
    if (real_now() >= deadline_of_child) {
      ::kill(copy, SIGKILL);
      ::waitpid(copy, &status, 0);
      return false;
    }
    if (::waitpid(copy, &status, WNOHANG) != copy) continue;
    if (WIFEXITED(status) && WEXITSTATUS(status) == violated_status) ::_exit(violated_status);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
}

[[noreturn]] void end_stuck(double computed, const void* pc) {
  char seconds[32];
  std::snprintf(seconds, sizeof seconds, "%.0f", computed);
  if (still.was_opened)
    end_unable("a crash state is opened in " + std::to_string(board->steps_of_copy) +
                   " accesses on the machine, and not within " + seconds + " s of processor time beside it," +
                   where(pc),
               "make recovery shorter, or the subject the same on every medium");
  if (computed >= computing_suspicion)
    end_unable(std::string("it computes for ") + seconds + " s without any access to memory that the machine sees," +
                   where(pc) + ", so that a hang cannot be told from work",
               "build all of the subject's code with scripts/pmlab-c++");
  end_unable("it waits outside of the machine," + where(pc), "wait by the C library's locks, or leave the wait out");
}

// True: a library's recovery has waited for half of the budget, though not for as long as elsewhere. That it would end
// cannot be said.
bool recovery_waits(double waited) {
  const double long_enough = std::clamp(budget_of_child / 2, waiting_suspicion, waiting_at_end);
  constexpr double computing_share = 0.1;
  const double computed = waited < long_enough ? -1 : seconds_of_crashed_process();
  return computed >= 0 && computed < computing_share * waited;
}

void on_tick(int /*signal*/, siginfo_t* /*info*/, void* context) {
  const std::uint64_t progress = board->counts.rounds + board->counts.crash.judged + simulator::the_machine().steps();
  const double processor = processor_seconds();
  const bool over = real_now() >= deadline_of_child;
  if (progress != still.progress) {
    still.progress = progress;
    still.processor = processor;
    still.ticks = 0;
    still.was_opened = false;
    if (over) end_in_time();
    return;
  }
  ++still.ticks;
  const double computed = processor - still.processor;
  const double waited = still.ticks * tick_seconds - computed;
  // A state that is opened beside the machine may take long; the machine's own steps never pause.
  const bool may_take_long = crash_explorer::opening() != nullptr && !still.was_opened;
  if (over && recovery_waits(waited))
    end_unable("a recovery, or an operation after it, did not end within the budget: it waits outside of the machine",
               "wait by the C library's locks, or give a larger --budget");
  if (over && (may_take_long || (computed < computing_at_end && waited < waiting_at_end))) end_in_time();
  if (over || computed >= computing_patience || waited >= waiting_patience)
    end_stuck(computed, program_counter(context));
  if (crash_explorer::opening() == nullptr || still.was_opened) return;
  if (computed < computing_suspicion * still.suspicion && waited < waiting_suspicion * still.suspicion) return;
  still.was_opened = ends_on_machine();
  still.suspicion *= after_a_wrong_one;
}

void watch_over_child() {
  // A copy of the process opens a crash state on it.
  static std::array<char, std::size_t{4} << 20> stack;
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

std::unique_ptr<runner> make_runner(const subject& kind, const round_options& first) {
  if (first.hosts) return std::make_unique<host_runner>(kind, board->counts, end_child);
  if (kind.volume != nullptr) return std::make_unique<volume_runner>(kind, board->counts, end_child);
  if (kind.prefix != nullptr) return std::make_unique<prefix_runner>(kind, board->counts, end_child);
  return std::make_unique<index_runner>(kind, board->counts, end_child);
}

// The first round of a process does one-time work (statics, first uses of libraries), and so has other schedules than
// the same round later on. So that any round can be replayed alone, all are preceded by this one.
void warm_up(runner& rounds, round_options like) {
  const round_counts none = board->counts;
  like.operations = 4;
  like.grown = like.thin = like.joining = like.loaded = like.filled = like.full = like.short_dram = like.kills = false;
  if (like.hosts) {
    like.hosts->death.reset();
    like.hosts->deaths = 0;
  }
  like.reopenings = 0;
  like.crashes = false;
  like.steps.clear();
  rounds.run(like);
  board->counts = none;
}

// A block that the subject keeps between rounds bars the machine's heap from beginning again, so each round takes more
// of it. Another process begins with an empty one. A bounded search has its schedules from the rounds before.
bool has_grown_large(const round_options& last) {
  constexpr std::size_t most_bytes = std::size_t{512} << 20;
  const auto* const heap = simulator::the_machine().dram();
  return last.how != search::bounded && heap != nullptr && heap->extent() > most_bytes;
}

void run_rounds(const subject& kind, const std::function<bool(std::uint64_t, round_options&)>& next, double seconds) {
  lose_stdout();  // what the subject prints is no part of the report
  budget_of_child = seconds;
  deadline_of_child = real_now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds));
  watch_over_child();
  ::pthread_atfork(
      [] {
        if (fork_permit::is_given()) return;
        const auto* const at = simulator::the_machine().current();
        end_unable("it makes a process (fork)" +
                       (at != nullptr ? ", after the access at " + simulator::code_address(at->last_caller) : ""),
                   "leave the fork out: the simulated machine has one process");
      },
      nullptr, nullptr);
  simulator::the_machine().on_violation = [](const std::string& what) { end_child(what); };
  report_ends_by_code();
  if (const reached_code* const code = code_of(kind)) simulator::the_machine().record(code->object());
  try {
    round_options options;
    const bool any = next(0, options);
    const std::unique_ptr<runner> rounds = make_runner(kind, options);
    rounds->on_history = [](const std::string& history) { board->history.put(history); };
    // Some hosts' variables are not as after loading when a round has ended. Another process goes on then; what it
    // shares with this one is on the board. Where that is so behind a sound round, too, each round has one.
    host_objects* const objects = options.hosts ? &host_objects::of(kind) : nullptr;
    if (objects != nullptr) objects->remember();
    if (any && !board->each_alone) {
      warm_up(*rounds, options);
      board->each_alone = objects != nullptr && objects->have_changed();
      if (board->each_alone) ::_exit(goes_on_status);
    }
    for (std::uint64_t number = board->next; next(number, options); ++number) {
      if (real_now() >= deadline_of_child) break;
      board->round = number;
      if (!rounds->is_one(options)) continue;
      rounds->run(options);
      if (!has_grown_large(options) && (objects == nullptr || !objects->have_changed())) continue;
      board->next = number + 1;
      ::_exit(goes_on_status);
    }
  } catch (...) {
    end_child("an operation throws: " + text_of_thrown());
  }
  end_in_time();
}

}  // namespace

unsigned job_of_process() noexcept { return job; }

void end_unable(const std::string& problem, const std::string& remedy) {
  board->text.put(problem);
  board->remedy.put(remedy);
  ::_exit(unable_status);
}

std::string thrown_text(const std::exception& e) {
  const auto* const refusal = dynamic_cast<const simulator::host_refusal*>(&e);
  if (refusal != nullptr) end_unable(refusal->problem(), refusal->remedy());
  return e.what();
}

namespace {

// One of the children, and its part of the rounds.
class rounds_child {
 public:
  rounds_child(const subject& kind, const std::function<bool(std::uint64_t, round_options&)>& next, double seconds,
               const round_counts& counts, unsigned number, unsigned jobs)
      : board_(mapped_board(counts)),
        end_(clock::now() + std::chrono::duration_cast<clock::duration>(std::chrono::duration<double>(seconds))),
        next_([&next, number, jobs](std::uint64_t round, round_options& options) {
          return next(round * jobs + number, options);
        }),
        kind_(kind),
        number_(number),
        process_(started()) {}
  rounds_child(const rounds_child&) = delete;
  rounds_child& operator=(const rounds_child&) = delete;
  ~rounds_child() { ::munmap(board_, sizeof(shared_board)); }

  // One whose place another process takes has not.
  [[nodiscard]] bool ended() {
    const std::optional<exit_reason> reason = process_.ended();
    if (!reason) return false;
    if (reason->signal != 0 || reason->status != goes_on_status || is_stopped_) return true;
    process_ = started();
    return false;
  }
  // It ends with its next round.
  [[nodiscard]] bool is_brief() const noexcept { return board_->each_alone; }
  // The time is over, or another one has a verdict.
  void stop() {
    if (!std::exchange(is_stopped_, true)) process_.kill();
  }
  [[nodiscard]] const round_counts& counts() const noexcept { return board_->counts; }

  // Waits for its end. No violation and no problem: it ended because the time was over, or there were no rounds left.
  [[nodiscard]] child_outcome outcome() {
    const exit_reason reason = process_.wait();
    child_outcome result;
    next_(board_->round, result.round);
    result.rounds_before = board_->round;
    result.history = lines_of(board_->history.get());
    if (is_stopped_) return result;
    const bool is_unable = reason.signal == 0 && reason.status == unable_status && *board_->remedy.get() != 0;
    if (is_unable) {
      result.problem = board_->text.get();
      result.remedy = board_->remedy.get();
    } else if (reason.signal == SIGKILL) {
      result.problem = was_killed;
      result.remedy = after_a_kill;
    } else if (reason.signal != 0) {
      result.violated = true;
      result.what = std::string("the process died: ") + ::strsignal(reason.signal);
    } else if (!reason.is_success() || !board_->has_ended) {
      result.violated = true;
      result.what = board_->text.get();
      if (result.what.empty())
        result.what = "an operation ends the process with status " + std::to_string(reason.status);
    }
    return result;
  }

 private:
  [[nodiscard]] static shared_board* mapped_board(const round_counts& counts) {
    void* const area = ::mmap(nullptr, sizeof(shared_board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) throw std::runtime_error("cannot map shared memory");
    auto* const made = ::new (area) shared_board;
    made->counts = counts;
    return made;
  }

  [[nodiscard]] child_process started() {
    // Rounds that are lost to their program would go on for the whole budget.
    return child_process::forked_for_its_parent([this] {
      board = board_;
      job = number_;
      run_rounds(kind_, next_, std::chrono::duration<double>(end_ - clock::now()).count());
    });
  }

  shared_board* board_;
  clock::time_point end_;
  std::function<bool(std::uint64_t, round_options&)> next_;
  const subject& kind_;
  unsigned number_;
  child_process process_;
  bool is_stopped_ = false;
};

}  // namespace

child_outcome run_rounds_in_child(const subject& kind, const std::function<bool(std::uint64_t, round_options&)>& next,
                                  double seconds, round_counts& counts,
                                  const std::function<void(const round_counts&)>& tick, unsigned jobs) {
  std::fflush(nullptr);
  std::vector<std::unique_ptr<rounds_child>> children;
  for (unsigned number = 0; number < jobs; ++number)
    children.push_back(
        std::make_unique<rounds_child>(kind, next, seconds, number == 0 ? counts : round_counts{}, number, jobs));
  const auto add_up = [&] {
    counts = children.front()->counts();
    for (std::size_t i = 1; i < children.size(); ++i) counts += children[i]->counts();
  };
  // They end by themselves, unless their subject has taken its signals away.
  const auto deadline = clock::now() + std::chrono::duration<double>(1.05 * seconds + 1);
  std::vector<bool> is_known(jobs);
  child_outcome outcome;
  clock::time_point last_tick;
  for (bool is_decided = false;;) {
    bool all_ended = true;
    bool is_brief = false;
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (is_known[i]) continue;
      if (!children[i]->ended()) {
        all_ended = false;
        is_brief = is_brief || children[i]->is_brief();
        if (is_decided || clock::now() > deadline) children[i]->stop();
        continue;
      }
      is_known[i] = true;
      child_outcome one = children[i]->outcome();
      if (is_decided) continue;
      is_decided = one.violated || !one.problem.empty();
      outcome = std::move(one);
    }
    add_up();
    if (all_ended) return outcome;
    constexpr std::chrono::milliseconds usual(50);
    if (tick && clock::now() - last_tick >= usual) {
      tick(counts);
      last_tick = clock::now();
    }
    constexpr useconds_t briefly = 200;
    ::usleep(is_brief ? briefly : tick ? 50'000 : 2'000);
  }
}

}  // namespace pmlab::verify
