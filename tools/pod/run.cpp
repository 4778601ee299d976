// Rounds of processes on one memory, some of which are killed.
#include "tools/pod/run.hpp"
#include "tools/pod/host_process.hpp"
#include "tools/pod/judge.hpp"
#include "tools/pod/operation_log.hpp"
#include <pmlab/base/child_process.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/random.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <unistd.h>

namespace pmlab::pods {
namespace {

using namespace std::chrono_literals;

// A host that has not ended by then waits for an event that never happens.
constexpr auto longest_round = 30s;
// Nanoseconds: some operations.
constexpr std::uint64_t longest_delay = 20'000;
// Moments of lines, as a power of two: from a step of an operation to all of a host's joining.
constexpr std::uint64_t fewest_moments = 3;
constexpr std::uint64_t most_moments = 9;

constexpr std::array ending = {SIGINT, SIGTERM, SIGHUP};

// While it lives, signals that end the program wait: a file that is being made has another name.
class waiting_signals {
 public:
  waiting_signals() {
    sigset_t those;
    ::sigemptyset(&those);
    for (const int end : ending) ::sigaddset(&those, end);
    ::sigprocmask(SIG_BLOCK, &those, &before_);
  }
  waiting_signals(const waiting_signals&) = delete;
  waiting_signals& operator=(const waiting_signals&) = delete;
  ~waiting_signals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

// Removed behind the round, and where a signal ends the program.
class file_of_round {
 public:
  explicit file_of_round(std::string at) : path(std::move(at)) {
    std::copy_n(path.c_str(), std::min(path.size() + 1, to_remove.size() - 1), to_remove.begin());
    for (const int end : ending) ::signal(end, remove_and_end);
  }
  file_of_round(const file_of_round&) = delete;
  file_of_round& operator=(const file_of_round&) = delete;
  ~file_of_round() {
    for (const int end : ending) ::signal(end, SIG_DFL);
    if (!is_kept) ::unlink(path.c_str());
  }

  std::string path;
  bool is_kept = false;

 private:
  static inline std::array<char, 4096> to_remove{};
  static inline pid_t of_process = ::getpid();
  static void remove_and_end(int signal) {
    if (::getpid() == of_process) ::unlink(to_remove.data());
    ::signal(signal, SIG_DFL);
    ::raise(signal);
  }
};

class one_round {
 public:
  one_round(const run_options& o, std::uint64_t seed, run_result& all)
      : options_(o),
        source_(seed),
        all_(all),
        file_(o.folder + "/pmlab-pod-" + std::to_string(::getpid()) + "-" + std::to_string(seed)),
        round_(make_round(o, seed, file_.path)),
        log_(o.hosts + o.kills, o.operations),
        died_(log_.processes()) {}

  void run() {
    for (std::uint64_t i = 0; i < options_.keys; ++i) keys_.push_back(source_.next());
    // A third is there.
    for (std::size_t i = 0; i < keys_.size(); i += 3) before_.push_back({keys_[i], i});
    {
      const waiting_signals until_it_has_its_name;
      round_->make(before_);
    }
    for (unsigned h = 0; h < options_.hosts; ++h) start();
    const bool have_joined = wait_for([&] {
      return std::all_of(hosts_.begin(), hosts_.end(),
                         [](host& h) { return h.log->is_ready.load() || h.process.ended(); });
    });
    log_.may_begin().store(true, std::memory_order_release);
    const bool have_ended = have_joined && wait_for([&] {
                              // Those that begin in place of others are behind them.
                              bool all = true;
                              for (std::size_t p = 0; p < hosts_.size(); ++p) all = has_ended(p) && all;
                              return all;
                            });
    all_.violation = have_ended ? look_back() : "a host has not ended within 30 s: it waits for ever";
    if (!all_.violation.empty()) {
      file_.is_kept = true;
      all_.kept = file_.path;
    }
  }

 private:
  struct host {
    child_process process;
    process_log* log;
  };

  void start() {
    const std::size_t number = hosts_.size();
    process_log& log = log_.process(number);
    kill_time when;
    if (number < options_.kills) when = time_of_kill();
    child_process made = child_process::forked_for_its_parent([&] {
      try {
        round_->be_host(number, keys_, when, log_);
      } catch (const std::exception& e) {
        log.fail(e.what());
      }
    });
    hosts_.push_back({std::move(made), &log});
  }

  // By the clock in a fourth of the cases, and where a host joins in another one.
  kill_time time_of_kill() {
    kill_time when{source_.below(options_.operations), source_.below(4) == 0, source_.below(longest_delay)};
    // The end of a stay: it dies where it leaves.
    const std::uint64_t of_a_stay = options_.operations_of_a_stay();
    if (source_.below(8) == 0)
      when.operation = std::min(options_.operations, (when.operation / of_a_stay + 1) * of_a_stay) - 1;
    if (source_.below(4) != 0)
      when.moments =
          1 + source_.below(std::uint64_t{1} << (fewest_moments + source_.below(most_moments - fewest_moments + 1)));
    return when;
  }

  template <class Condition>
  static bool wait_for(Condition&& holds) {
    const auto end = std::chrono::steady_clock::now() + longest_round;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(200us);
    }
    return true;
  }

  // True: the process has. Where it was killed, it may be that another one begins in its place.
  bool has_ended(std::size_t p) {
    const std::optional<exit_reason> why = hosts_[p].process.ended();
    if (!why) return false;
    if (why->signal != SIGKILL || died_[p] != 0) return true;
    died_[p] = clock_now();
    ++all_.killed;
    const std::uint64_t begun = log_.process(p).begun.load(std::memory_order_acquire);
    if (begun != 0 && log_.records(p)[begun - 1].returned.load() == 0) ++all_.in_operation;
    if (source_.below(2) == 0) return true;
    ++all_.followed;
    start();
    return true;
  }

  // "" or what was wrong in the round.
  std::string look_back() {
    for (std::size_t p = 0; p < hosts_.size(); ++p) {
      host& h = hosts_[p];
      const std::string name = "host " + std::to_string(p);
      if (h.log->failure[0] != '\0') return name + " has given up: " + h.log->failure.data();
      if (died_[p] == 0 && !h.log->has_ended.load()) return name + " has ended with " + h.process.wait().text();
      all_.happened += h.log->happened.load();
    }
    note_pause();
    const found_state joined = round_->look(false);
    if (!joined.violation.empty()) return "a host that joins at the end finds: " + joined.violation;
    if (std::string wrong = judge(keys_, before_, log_, died_, joined.entries); !wrong.empty()) return wrong;
    const found_state alone = round_->look(true);
    if (!alone.violation.empty()) return "a host that opens it alone finds: " + alone.violation;
    if (alone.entries != joined.entries) return "a host that opens it alone finds other entries than one that joins";
    return {};
  }

  void note_pause() {
    std::uint64_t first = 0;
    for (const std::uint64_t d : died_)
      if (d != 0 && (first == 0 || d < first)) first = d;
    std::uint64_t longest = 0;
    for (unsigned p = 0; p < log_.processes(); ++p)
      for (const operation_record& r : log_.records(p).first(log_.process(p).begun.load())) {
        const std::uint64_t returned = r.returned.load();
        if (returned == 0) continue;
        ++all_.operations;
        if (first != 0 && returned > first) longest = std::max(longest, returned - r.called);
      }
    if (first != 0) all_.pauses.push_back(static_cast<double>(longest) / 1e6);
  }

  const run_options& options_;
  splitmix64 source_;
  run_result& all_;
  file_of_round file_;
  std::unique_ptr<round_of_hosts> round_;
  operation_log log_;
  std::vector<std::uint64_t> died_;  // when, by process; 0: it did not
  std::vector<std::uint64_t> keys_;
  std::vector<indexes::entry> before_;
  std::vector<host> hosts_;
};

}  // namespace

run_result run(const run_options& o, const std::function<void(const run_result&)>& has_ended_round) {
  run_result result;
  for (std::uint64_t r = 0; r < o.rounds && result.violation.empty(); ++r) {
    one_round(o, o.seed + r, result).run();
    ++result.rounds;
    has_ended_round(result);
  }
  return result;
}

}  // namespace pmlab::pods
