// The states that a crash of a recorded program may leave in its pool.
#include "checker/programs/program_states.hpp"

#include "checker/programs/pool_image.hpp"
#include "checker/programs/pool_model.hpp"
#include "checker/verify/check_command.hpp"
#include "checker/verify/choices.hpp"
#include "checker/verify/seen_images.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/base/random.hpp>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <utility>

namespace pmlab::programs {
namespace {

using clock = std::chrono::steady_clock;
using verify::check_command;

// A state by its place in the run: enough to make it again.
struct place {
  std::size_t step = 0;  // before this one
  std::size_t marks = 0;
  pool_model::choice choice;
};

// One check at a time, and its image.
struct slot {
  slot(const state_options& o, std::uint64_t bytes)
      : image(file.path(), bytes), check(o.check, file.path(), o.check_seconds, o.check_server) {}
  verify::scratch_file file{".img"};
  pool_image image;
  check_command check;
  place of;
};

class explorer {
 public:
  explorer(const program_run& run, const state_options& options,
           const std::function<void(const state_counts&)>& progress)
      : run_(run), options_(options), progress_(progress), model_(run), random_(options.seed) {
    for (unsigned i = 0; i < options.checks_at_once; ++i)
      slots_.push_back(std::make_unique<slot>(options, run.pool_bytes()));
    for (const program_run::step& s : run.steps()) {
      counts_.stores += s.head->what == event::store || s.head->what == event::streaming_store ? 1 : 0;
      counts_.flushes += s.head->what == event::flush || s.head->what == event::complete_flush ? 1 : 0;
      counts_.fences += s.head->what == event::fence ? 1 : 0;
      if (s.head->what == event::mark) marks_.emplace_back(s.text());
    }
    counts_.marks = marks_.size();
    counts_.steps = run.steps().size();
  }

  state_counts run() {
    audit();
    if (options_.until.empty()) try_check();
    for (const auto& s : slots_) s->check.works();
    constexpr std::size_t first_pass = 4, factor = 4, most = std::size_t{1} << 20;
    const std::size_t limit = options_.states_per_point == 0 ? most : options_.states_per_point;
    for (std::size_t states = std::min(first_pass, limit);; states = std::min(limit, states * factor)) {
      pass(states);
      const bool complete = counts_.whole_run && counts_.sampled_points == 0;
      if (stops() || complete || states == limit) break;
    }
    while (any_runs()) wait();
    // A violation of a recovery is reported already.
    if (wrong_ && !counts_.found) report();
    counts_.seconds = seconds();
    return std::move(counts_);
  }

 private:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(clock::now() - start_).count(); }
  [[nodiscard]] bool stops() const {
    return wrong_.has_value() || counts_.found.has_value() || seconds() > options_.budget_seconds;
  }

  // Stores that the recorder did not see would make every verdict worthless.
  void audit() {
    for (const program_run::step& s : run_.steps()) model_.take(s);
    if (model_.hash_of_all() != run_.steps().back().head->at)
      throw error("the content of the pool is not that of its recorded stores: one went around the recorder",
                  "let it change its pool by stores only, not by write() to the file or in another process");
    if (!options_.after.empty() && std::find(marks_.begin(), marks_.end(), options_.after) == marks_.end())
      throw error("the program made no mark '" + options_.after + "'", "name a mark that it makes");
  }

  // On the state that the program has left: a check that faults or hangs there is broken itself. REQUIRES: all is
  // taken.
  void try_check() {
    place end{run_.steps().size(), marks_.size(), {}};
    for (const pool_model::line* l : model_.uncertain())
      end.choice.push_back(static_cast<std::uint32_t>(l->cuts.size() - 1));
    static_cast<void>(judge(end));
  }

  // Calls at(step, marks) at each crash point, while it returns true. Whether it reached the last one.
  template <class At>
  bool for_each_point(At&& at) {
    model_.reset();
    std::size_t marks = 0;
    bool begun = options_.after.empty();
    const std::vector<program_run::step>& steps = run_.steps();
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const event what = steps[i].head->what;
      if (begun && (what == event::end || model_.makes_durable(steps[i])) && !at(i, marks)) return false;
      if (what == event::mark && !options_.until.empty() && steps[i].text() == options_.until) {
        return at(i, marks);
      }
      model_.take(steps[i]);
      if (what != event::mark) continue;
      begun = begun || marks_[marks] == options_.after;
      ++marks;
      if (begun && !at(i + 1, marks)) return false;
    }
    return true;
  }

  void pass(std::size_t states) {
    std::uint64_t points = 0, sampled = 0;
    const bool ended = for_each_point([&](std::size_t step, std::size_t marks) {
      ++points;
      counts_.points = std::max(counts_.points, points);
      counts_.reached_step = std::max<std::uint64_t>(counts_.reached_step, step + 1);
      const std::vector<pool_model::line*>& lines = model_.uncertain();
      std::size_t all = 1;
      for (const pool_model::line* l : lines) all = std::min(states + 1, all * l->cuts.size());
      if (all > states) ++sampled;
      verify::for_each_choice(
          choice_, lines.size(), 0, verify::nothing_fixed, states, random_,
          [&](std::size_t i) { return static_cast<std::uint32_t>(lines[i]->cuts.size() - 1); },
          [&](const pool_model::choice& c) {
            visit({step, marks, c});
          });
      if (progress_) progress_(counts_);
      return !stops();
    });
    // A pass that was cut off shows nothing of the points that it did not reach.
    if (!ended) return;
    counts_.whole_run = true;
    counts_.sampled_points = sampled;
  }

  void visit(place p) {
    if (stops()) return;
    if (!seen_.insert(mix_bits(model_.hash(p.choice) + (p.marks + 1) * golden_ratio))) return;
    slot& s = free_slot();
    if (stops()) return;
    ++counts_.checked;
    s.of = std::move(p);
    model_.write(s.image, s.of.choice);
    s.check.start(marks_before(s.of.marks));
  }

  // The check itself is the program now, and the state its pool.
  void crash_recovery(const slot& s) {
    if (!counts_.no_recoveries.empty() || recovery_seconds_ > options_.recovery_share * seconds()) return;
    if (!seen_recoveries_.insert(s.image.changes())) return;
    const double begun = seconds();
    crash_new_recovery(s);
    recovery_seconds_ += seconds() - begun;
  }

  void crash_new_recovery(const slot& s) {
    const place& p = s.of;
    const verify::scratch_file pool(".img"), marks(".marks");
    {
      pool_image image(pool.path(), run_.pool_bytes());
      image.write_as(s.image);
    }
    std::ofstream file(marks.path(), std::ios::trunc);
    for (const std::string& m : marks_before(p.marks)) file << m << '\n';
    file.close();
    ::setenv("PMLAB_IO_MARKS", marks.path().c_str(), 1);
    std::optional<program_run> recovery;
    try {
      recovery.emplace(program_options{check_command::with_path(options_.check, pool.path()), options_.recorder,
                                       options_.check_seconds});
    } catch (const error& e) {
      // A check that fails is reported without the recorder; one that cannot be recorded is no reason to end.
      return count_failed_recovery(e.what());
    }
    // A check that goes on to change the pool is no recovery any more.
    const auto& steps = recovery->steps();
    if (std::none_of(steps.begin(), steps.end(), [](const program_run::step& step) {
          return step.head->what == event::mark && step.text() == recovered_mark;
        })) {
      // One that found nothing to recover may end before its mark.
      if (++unmarked_recoveries_ == tries_of_recoveries && counts_.recoveries == 0)
        counts_.no_recoveries =
            std::string("the check makes no mark '") + recovered_mark + "' when it has recovered its pool";
      return;
    }
    constexpr std::size_t states = 2;
    constexpr double longest = 10;
    state_options inner = options_;
    inner.recovery_share = 0;
    inner.states_per_point = states;
    inner.seed = options_.seed + counts_.checked;
    inner.budget_seconds = std::min(longest, options_.budget_seconds - seconds());
    inner.after.clear();
    inner.until = recovered_mark;
    inner.marks_of_state = marks_before(p.marks);
    if (inner.budget_seconds <= 0) return;
    state_counts of;
    try {
      of = explorer(*recovery, inner, progress_of_recovery).run();
    } catch (const error& e) {
      return count_failed_recovery(e.what());
    }
    ++counts_.recoveries;
    counts_.recovery_states += of.checked;
    if (!of.found) return;
    of.found->crash = "in the recovery, " + of.found->crash + "; it recovers from a crash " + crash_in_words(p.step);
    counts_.found = std::move(of.found);
  }

  void count_failed_recovery(const char* why) {
    if (counts_.recoveries == 0 && ++failed_recoveries_ == tries_of_recoveries) counts_.no_recoveries = why;
  }

  [[nodiscard]] std::vector<std::string> marks_before(std::size_t count) const {
    if (!options_.marks_of_state.empty()) return options_.marks_of_state;
    return {marks_.begin(), marks_.begin() + static_cast<std::ptrdiff_t>(count)};
  }

  [[nodiscard]] bool any_runs() const {
    return std::any_of(slots_.begin(), slots_.end(), [](const auto& s) { return s->check.runs(); });
  }

  void wait() {
    std::vector<check_command*> checks;
    for (const auto& s : slots_) checks.push_back(&s->check);
    check_command::wait_for_one(checks);
    std::optional<error> failed;
    for (const auto& s : slots_) {
      if (!s->check.runs()) continue;
      std::optional<std::string> said;
      try {
        said = s->check.verdict();
      } catch (const error& e) {
        failed = e;
      }
      if (!said) continue;
      if (said->empty()) {
        if (options_.recovery_share > 0 && !stops()) crash_recovery(*s);
        continue;
      }
      // The earliest of those that are checked at once, so that two runs report the same.
      if (!wrong_ || s->of.step < wrong_->first.step) wrong_ = {s->of, *said};
    }
    // A violation stands, even if the check gives no verdict on another state.
    if (failed && !wrong_) throw *failed;
  }

  slot& free_slot() {
    for (;;) {
      for (const auto& s : slots_)
        if (!s->check.runs()) return *s;
      wait();
    }
  }

  std::string judge(const place& p) {
    slot& s = *slots_.front();
    model_.write(s.image, p.choice);
    s.check.start(marks_before(p.marks));
    for (;;) {
      check_command::wait_for_one({&s.check});
      if (const std::optional<std::string> said = s.check.verdict()) return *said;
    }
  }

  // "" too if the check gives no verdict: the violation that is known stands.
  std::string verdict_or_none(const place& p) {
    try {
      return judge(p);
    } catch (const error&) {
      return {};
    }
  }

  // Loses as little as shows the violation, and keeps that state.
  void report() {
    place p = wrong_->first;
    program_violation v;
    v.what = wrong_->second;
    for_each_point([&](std::size_t step, std::size_t marks) {
      if (step != p.step || marks != p.marks) return true;
      const std::vector<pool_model::line*>& lines = model_.uncertain();
      constexpr std::size_t patience = 400;
      std::size_t tries = 0;
      // Halves of the lines first, then one by one.
      for (std::size_t part = std::max<std::size_t>(1, lines.size() / 2);; part = std::max<std::size_t>(1, part / 2)) {
        for (std::size_t from = 0; from < lines.size() && tries < patience; from += part) {
          place less = p;
          for (std::size_t i = from; i < std::min(lines.size(), from + part); ++i)
            less.choice[i] = static_cast<std::uint32_t>(lines[i]->cuts.size() - 1);
          if (less.choice == p.choice) continue;
          ++tries;
          if (std::string said = verdict_or_none(less); !said.empty()) {
            p = std::move(less);
            v.what = std::move(said);
          }
        }
        if (part == 1) break;
      }
      v.lost = lost_in_words(p.choice);
      v.image = options_.keep + ".image";
      pool_image kept(v.image, run_.pool_bytes());
      model_.write(kept, p.choice);
      return false;
    });
    v.crash = crash_in_words(p.step);
    v.marks_file = options_.keep + ".marks";
    std::ofstream file(v.marks_file, std::ios::trunc);
    for (const std::string& m : marks_before(p.marks)) file << m << '\n';
    v.marks = marks_before(p.marks);
    constexpr std::size_t last = 3;
    if (v.marks.size() > last) v.marks.erase(v.marks.begin(), v.marks.end() - last);
    counts_.found = std::move(v);
  }

  // Names a crash before this step.
  [[nodiscard]] std::string crash_in_words(std::size_t step) const {
    const std::vector<program_run::step>& steps = run_.steps();
    if (step > 0 && steps[step - 1].head->what == event::mark)
      return "after the mark '" + std::string(steps[step - 1].text()) + "'";
    const entry& next = *steps[step].head;
    if (next.what == event::mark) return "before the mark '" + std::string(steps[step].text()) + "'";
    if (next.what == event::end) return "at the end of the program";
    const std::string name = next.what == event::fence ? "fence" : next.what == event::sync ? "fsync" : "flush";
    return "before the " + name + " at " + run_.place_of(next.stack, 3);
  }

  std::string lost_in_words(const pool_model::choice& c) {
    std::map<std::uint32_t, std::pair<std::size_t, std::uint64_t>> by_stack;  // words, and the first place in the file
    std::vector<std::uint32_t> order;
    for (const pool_model::word_store& w : model_.lost(c)) {
      const auto [found, is_new] = by_stack.try_emplace(w.by->stack, 0, w.at);
      ++found->second.first;
      if (is_new) order.push_back(w.by->stack);
    }
    std::string text;
    constexpr std::size_t most = 8;
    for (std::size_t i = 0; i < std::min(order.size(), most); ++i) {
      const auto& [words, at] = by_stack[order[i]];
      text += "\n  lost: " + std::to_string(words) + (words == 1 ? " word, at byte " : " words, from byte ") +
              std::to_string(at) + " of the pool on, stored by " + run_.place_of(order[i], 3);
    }
    if (order.size() > most) text += "\n  lost: stores of " + std::to_string(order.size() - most) + " further places";
    return text.empty() ? "\n  lost: nothing; all stores so far are in the state" : text;
  }

  const program_run& run_;
  const state_options& options_;
  const std::function<void(const state_counts&)>& progress_;
  pool_model model_;
  splitmix64 random_;
  verify::seen_images seen_;
  std::vector<std::string> marks_;
  std::vector<std::unique_ptr<slot>> slots_;
  pool_model::choice choice_;
  std::optional<std::pair<place, std::string>> wrong_;
  verify::seen_images seen_recoveries_;
  double recovery_seconds_ = 0;
  static constexpr std::uint64_t tries_of_recoveries = 16;
  std::uint64_t failed_recoveries_ = 0, unmarked_recoveries_ = 0;
  std::function<void(const state_counts&)> progress_of_recovery;
  state_counts counts_;
  clock::time_point start_ = clock::now();
};

}  // namespace

state_counts explore_program(const program_run& run, const state_options& options,
                             const std::function<void(const state_counts&)>& progress) {
  return explorer(run, options, progress).run();
}

}  // namespace pmlab::programs
