// Every state that a crash may leave at any point of one history, divided among processes.
//
// A first process runs the history and counts its crash points. Then several run it, and each searches the groups of
// points that it takes first.
#include "checker/verify/complete_search.hpp"
#include "checker/verify/child_run.hpp"
#include "checker/verify/complete_options.hpp"
#include "checker/verify/elapsed.hpp"
#include "checker/verify/shared_text.hpp"
#include "checker/verify/unable.hpp"
#include <pmlab/base/child_process.hpp>
#include <pmlab/base/error.hpp>

#include <algorithm>
#include <chrono>
#include <new>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

namespace pmlab::verify {
namespace {

using clock = std::chrono::steady_clock;

// Memory that processes share, zero at first.
template <class T>
class shared_object {
 public:
  shared_object() {
    void* const area = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) throw std::runtime_error("cannot map shared memory");
    object_ = ::new (area) T;
  }
  shared_object(const shared_object&) = delete;
  shared_object& operator=(const shared_object&) = delete;
  ~shared_object() { ::munmap(object_, sizeof(T)); }

  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }

 private:
  T* object_;
};

// What a process has found out.
struct part_of_search {
  complete_counts counts;
  bool finished = false;  // its run came to its end
  bool violated = false;
  shared_text<std::size_t{64} << 10> what;
  shared_text<4096> problem;
  shared_text<4096> remedy;
};

round_options round_of_request(const complete_request& request, const complete_options& how) {
  round_options round;
  round.seed = request.seed;
  round.operations = request.operations;
  round.keys = request.keys;
  round.steps = request.steps;
  round.crash.complete = &how;
  round.crash.long_work_one_in = ~std::size_t{0};
  return round;
}

child_outcome run_once(const subject& kind, const round_options& round, double seconds, round_counts& counts,
                       const std::function<void(const round_counts&)>& tick) {
  return run_rounds_in_child(
      kind,
      [&](std::uint64_t number, round_options& next) {
        next = round;
        return number == 0;
      },
      seconds, counts, tick);
}

void be_part(const subject& kind, const round_options& round, double seconds, shared_search& shared,
             part_of_search& part) {
  round_counts counts;
  const child_outcome outcome =
      run_once(kind, round, seconds, counts, [&](const round_counts& now) { part.counts = now.complete; });
  part.counts = counts.complete;
  part.finished = counts.rounds == 1;
  part.violated = outcome.violated;
  part.what.put(outcome.what);
  part.problem.put(outcome.problem);
  part.remedy.put(outcome.remedy);
  if (outcome.violated) shared.violates(static_cast<std::size_t>(counts.complete.joint));
}

void add(complete_counts& to, const complete_counts& part) {
  to.points_covered += part.points_covered;
  to.joints += part.joints;
  to.openings += part.openings;
  to.outcomes += part.outcomes;
  to.fingerprint += part.fingerprint;
}

// The operations after the violation are left out first.
void shorten_completely(const subject& kind, violation& found, std::size_t begun, double seconds) {
  // The last operations of a shorter history are searched: the violation was there.
  complete_options last{};
  last.last_operations = 2;
  last.window = found.round.crash.complete->window;
  const complete_options* const whole = std::exchange(found.round.crash.complete, &last);
  if (found.round.steps.empty() && begun < found.round.operations) {
    violation trimmed = found;
    trimmed.round.steps.resize(begun);
    std::iota(trimmed.round.steps.begin(), trimmed.round.steps.end(), std::size_t{0});
    round_counts ignored;
    const child_outcome outcome = run_once(kind, trimmed.round, std::max(seconds / 4, 1.0), ignored, {});
    if (outcome.violated) {
      trimmed.what = outcome.what;
      trimmed.history = outcome.history;
      found = std::move(trimmed);
    }
  }
  shorten(kind, found, seconds);
  found.round.crash.complete = whole;
}

}  // namespace

void check_searchable(const subject& kind) {
  const auto refuse = [&](const char* why) {
    throw error(kind.name + " cannot be searched completely: " + why, "leave --exhaustive out");
  };
  if (kind.volume != nullptr || kind.prefix != nullptr || !kind.drives.empty() || kind.open_image_on_drives != nullptr)
    refuse("it has drives, and only the states of memory are searched so");
  if (kind.has_threads) refuse("it has threads of its own, and only one thread is");
  if (kind.open_recovered != nullptr) refuse("it is a library, whose recovery needs a process for each state");
}

complete_result search_completely(
    const subject& kind, const complete_request& request,
    const std::function<void(const complete_counts& done, const complete_counts& all)>& progress) {
  const auto start = clock::now();
  complete_result result;
  result.operations = request.steps.empty() ? request.operations : request.steps.size();
  const shared_object<shared_search> shared;

  // How long the history is.
  complete_options how;
  how.only_count = true;
  how.window = request.window;
  round_counts all;
  round_options round = round_of_request(request, how);
  const child_outcome counted = run_once(kind, round, request.budget_seconds, all, {});
  result.counts.points = all.complete.points;
  result.counts.states = all.complete.states;
  result.problem = counted.problem;
  result.remedy = counted.remedy;
  std::size_t begun = request.operations;
  bool finished = all.rounds == 1 && !counted.violated;
  if (counted.violated) {
    result.found.emplace();
    result.found->what = counted.what;
  }

  if (finished && result.problem.empty()) {
    how.only_count = false;
    how.every_state = request.every_state;
    how.shared = &*shared;
    std::vector<std::unique_ptr<shared_object<part_of_search>>> parts;
    std::vector<child_process> processes;
    for (unsigned p = 0; p < request.processes; ++p) {
      parts.push_back(std::make_unique<shared_object<part_of_search>>());
      part_of_search& part = **parts.back();
      const double left = std::max(request.budget_seconds - seconds_since(start), 0.1);
      processes.push_back(child_process::forked_for_its_parent([&] { be_part(kind, round, left, *shared, part); }));
    }
    for (bool going = true; going;) {
      going = false;
      for (child_process& p : processes) going = !p.ended() || going;
      complete_counts done;
      for (const auto& part : parts) add(done, (*part)->counts);
      if (progress) progress(done, result.counts);
      if (going) ::usleep(20'000);
    }
    for (child_process& p : processes)
      if (p.wait().signal == SIGKILL) {
        result.problem = was_killed;
        result.remedy = after_a_kill;
      }
    std::uint64_t first = ~std::uint64_t{0};
    for (const auto& p : parts) {
      const part_of_search& part = **p;
      add(result.counts, part.counts);
      finished = finished && part.finished;
      if (result.problem.empty()) {
        result.problem = part.problem.get();
        result.remedy = part.remedy.get();
      }
      if (!part.violated || part.counts.joint >= first) continue;
      first = part.counts.joint;
      begun = static_cast<std::size_t>(part.counts.operations_begun);
      result.found.emplace();
      result.found->what = part.what.get();
    }
  }
  if (result.found) {
    how.shared = nullptr;
    result.found->round = round;
    result.found->operations = result.operations;
    result.found->history = counted.history;
    if (request.shrink_seconds > 0) shorten_completely(kind, *result.found, begun, request.shrink_seconds);
  }
  result.complete =
      finished && !result.found && result.problem.empty() && result.counts.points_covered == result.counts.points;
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace pmlab::verify
