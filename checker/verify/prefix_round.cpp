// One run of a store whose crashes may take the newest changes.
#include "checker/verify/prefix_round.hpp"
#include "checker/verify/flush_profile.hpp"

#include "checker/verify/round_schedule.hpp"
#include <pmlab/base/random.hpp>

#include <algorithm>
#include <thread>
#include <utility>

namespace pmlab::verify {
namespace {

using act = prefix_step::action;

constexpr std::size_t memory_bytes = std::size_t{1} << 20;
// More than any round needs that does not wait for ever.
constexpr std::uint64_t accesses_of_opening = 20'000'000;
constexpr std::uint64_t accesses_of_a_step = 2'000'000;

std::uint64_t seed_of(const round_options& options) { return options.seed ^ options.schedule_seed << 32; }

std::string in_words(const std::vector<std::vector<std::vector<prefix_step>>>& phases) {
  std::string text;
  for (std::size_t p = 0; p < phases.size(); ++p) {
    if (p > 0) text.append("(a crash)\n");
    for (std::size_t t = 0; t < phases[p].size(); ++t)
      for (const prefix_step& s : phases[p][t]) {
        if (phases[p].size() > 1) text.append("thread ").append(std::to_string(t)).append(": ");
        text.append(to_string(s)).append("\n");
      }
  }
  return text;
}

}  // namespace

prefix_runner::prefix_runner(const subject& kind, round_counts& counts,
                             std::function<void(const std::string&)> violated)
    : kind_(kind),
      counts_(counts),
      violated_(std::move(violated)),
      memory_(memory_bytes),
      drives_{drive_set(kind.drives), drive_set(kind.small_drives.empty() ? kind.drives : kind.small_drives)},
      judge_(*kind.prefix) {}
prefix_runner::~prefix_runner() = default;

// ---- the plan

std::vector<prefix_runner::phase> prefix_runner::make_plan(const round_options& options) const {
  splitmix64 source(options.seed * 983 + 7);
  std::uint32_t number = options.nearly_full ? first_large_number : 0;
  const std::uint64_t bound = std::max<std::uint64_t>(kind_.prefix->at_most_milliseconds, 1);
  const bool syncs = source.one_in(2);
  std::uint64_t looks = 0;
  const auto a_step = [&](bool alone, bool is_first) {
    prefix_step s;
    const std::uint64_t kind = source.below(20);
    if (kind < 9) {
      const std::uint64_t count = source.one_in(3) ? 2 + source.below(3) : 1;
      for (std::uint64_t i = 0; i < count; ++i)
        s.changes.push_back({static_cast<std::uint32_t>(source.below(prefix_keys)), source.one_in(4) ? 0 : ++number});
      // A segment has room for one large value.
      if (options.nearly_full)
        for (std::size_t i = 1; i < s.changes.size(); ++i) s.changes[i].number = 0;
      s.what = syncs && source.one_in(8) ? act::apply_synced : act::apply;
    } else if (kind < 11 && syncs) {
      s.what = act::sync;
    } else if (kind < 14 && is_first) {
      s = {act::pass, {}, 1 + source.below(bound)};
    } else if (kind == 14 && source.one_in(2)) {
      s.what = act::compact;
    } else if (kind == 15 && is_first) {
      // An old snapshot holds what is erased.
      if (options.nearly_full) return prefix_step{act::get, {}, source.below(prefix_keys)};
      s.what = act::hold;
      if (!alone) source.below(prefix_keys);  // as a get: later steps stay as they are
    } else if (kind == 16 && is_first) {
      s = {act::look, {}, looks++ % 3};
      if (!alone) source.below(prefix_keys);
    } else if (kind == 17) {
      s = {act::walk, {}, source.below(2)};
    } else {
      s = {act::get, {}, source.below(prefix_keys)};
    }
    return s;
  };
  std::vector<phase> phases(1 + options.reopenings);
  std::size_t step = 0;
  for (phase& p : phases) {
    p.resize(options.threads);
    for (std::size_t t = 0; t < p.size(); ++t)
      for (std::size_t i = 0; i < options.operations; ++i, ++step) {
        prefix_step s = a_step(options.threads == 1, t == 0);
        if (options.steps.empty() || std::find(options.steps.begin(), options.steps.end(), step) != options.steps.end())
          p[t].push_back(std::move(s));
      }
  }
  return phases;
}

// ---- operations

std::string prefix_runner::compare(const prefix_state& found, const prefix_state& right) const {
  for (std::uint32_t k = 0; k < found.size(); ++k)
    if (found[k] != right[k])
      return "key " + std::to_string(k) + " has " + std::to_string(found[k]) + ", and must have " +
             std::to_string(right[k]);
  return {};
}

// "" or the violation in its result. `alone`: no other thread changes anything, so every answer is known.
std::string prefix_runner::perform(unsigned thread, const prefix_step& s, bool alone) {
  simulator::machine& machine = simulator::the_machine();
  std::string wrong;
  if (profile_ != nullptr) profile_->operation_begins();
  machine.quietly([&] { history_->called(thread, s); });
  prefix_state found;
  std::uint64_t sequence = 0;
  switch (s.what) {
    case act::apply:
    case act::apply_synced:
      sequence = store_->apply(s.changes);
      if (s.what == act::apply_synced && sequence != 0) store_->sync();
      break;
    case act::sync: store_->sync(); break;
    case act::pass: store_->pass(s.amount); break;
    case act::compact: store_->compact(); break;
    case act::hold: store_->hold(); break;
    case act::get: sequence = store_->get(static_cast<std::uint32_t>(s.amount)); break;
    case act::walk: found = store_->contents(s.amount == 1); break;
    case act::look: found = store_->look(static_cast<prefix_look>(s.amount)); break;
  }
  machine.quietly([&] {
    if (!s.changes.empty()) {
      wrong = history_->changed(thread, s, sequence);
      return;
    }
    // In the order of the keys; a get has one.
    std::vector<prefix_change> seen;
    if (s.what == act::get)
      seen.push_back({static_cast<std::uint32_t>(s.amount), static_cast<std::uint32_t>(sequence)});
    for (std::uint32_t k = 0; k < found.size(); ++k) seen.push_back({k, found[k]});
    if (s.what == act::get || s.what == act::walk) history_->saw(thread, std::move(seen));
    if (s.what == act::hold) history_->held(thread);
    if (s.what == act::look) history_->saw_in_snapshot(thread, seen);
    history_->returned(thread, s);
    const auto key = static_cast<std::uint32_t>(s.amount);
    const auto number = static_cast<std::uint32_t>(sequence);
    if (s.what == act::hold && alone) held_ = history_->now();
    if (s.what == act::look && alone && !held_.empty()) wrong = compare(found, held_);
    if (s.what == act::walk && alone) wrong = compare(found, history_->now());
    if (s.what == act::get && (alone ? history_->now()[key] != number : !history_->was_written(key, number)))
      wrong = "it returns " + std::to_string(number);
    for (std::uint32_t k = 0; k < found.size(); ++k)
      if (!history_->was_written(k, found[k])) wrong = "key " + std::to_string(k) + " has a value that was not written";
    if (!wrong.empty()) wrong = to_string(s) + ": " + wrong;
  });
  return wrong;
}

void prefix_runner::drive(unsigned thread, const thread_steps& steps, bool alone) {
  simulator::machine& machine = simulator::the_machine();
  for (const prefix_step& s : steps) {
    std::string wrong = perform(thread, s, alone);
    machine.quietly([&] {
      if (!wrong.empty()) violated_(wrong + machine.positions());
      std::string().swap(wrong);
      if (exploring_) explorer().promised();
    });
  }
}

// ---- the round

void prefix_runner::observe(simulator::persistence_observer* observer) {
  memory_.observe(observer);
  drives().observe(observer);
}

void prefix_runner::run_until_crash(const round_options& options, const phase& todo, bool last) {
  simulator::machine& machine = simulator::the_machine();
  history_ = std::make_unique<prefix_model>(kind_.prefix->at_most_milliseconds);
  if (!known_.empty()) history_->there_before(known_, known_sequence_);
  held_.clear();
  const std::unique_ptr<simulator::schedule> schedule = schedule_of(options, kind_.has_threads, accesses_before_);
  simulator::machine_options how;
  how.who = schedule.get();
  how.store_buffers = store_buffers_of(options);
  how.access_limit = accesses_of_opening + options.threads * options.operations * accesses_of_a_step;
  machine.begin(how);
  machine.use(&memory_);
  if (options.profile != nullptr) options.profile->begin();
  machine.use_drives(drives().all());
  drives().begin(seed_of(options));
  if (exploring_) {
    crash_options crashes = options.crash;
    if (!last) {  // states are kept, not judged: other rounds do that
      crashes.points_one_in = 3;
      crashes.states_per_point = crashes.states_per_promise = 3;
      crashes.only_keep_one = true;
    }
    judge_.begin(history_.get());
    explorer().begin(seed_of(options), crashes);
    observe(&explorer());
  }
  {
    machine.watch(true);
    const std::unique_ptr<prefix_target> store = kind_.prefix->open_simulated();
    store_ = store.get();
    if (options.threads == 1) {
      drive(0, todo[0], true);
    } else {
      machine.quietly([&] {
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < options.threads; ++t)
          threads.emplace_back([this, t, &todo] { drive(t, todo[t], false); });
        for (std::thread& t : threads) t.join();
      });
    }
    machine.watch(false);
    observe(nullptr);
    if (std::string wrong = history_->judge_reads(); !wrong.empty()) violated_(wrong);
    if (std::string wrong = store->check(); !wrong.empty()) violated_("at the end of the run, check(): " + wrong);
    if (std::string wrong = compare(store->contents(false), history_->now()); !wrong.empty())
      violated_("at the end of the run, " + wrong);
    if (options.nearly_full && last)
      if (std::string wrong = judge_.fill_again(*store, true); !wrong.empty())
        violated_("at the end of the run, " + wrong);
    machine.watch(true);
  }
  machine.watch(false);
  if (options.how == search::bounded && options.schedule_seed == 0) accesses_before_ = machine.accesses();
  counts_.accesses += machine.accesses();
  machine.end();
  if (machine.dram()->live_blocks() == 0) machine.dram()->reset();
}

// Replaces the drives by the image of one of the crashes, and `known_` by its content. False: there was no crash.
bool prefix_runner::crash() {
  const kept_crash& kept = explorer().kept();
  if (kept.blocks == nullptr) return false;
  {
    const std::unique_ptr<prefix_target> store = kind_.prefix->open_image(explorer().image_of_kept());
    known_ = store->contents(false);
    known_sequence_ = store->sequence();
  }
  memory_.reset();
  memory_.restore(kept.bytes.data(), kept.bytes.size());
  memory_.restore_blocks(*kept.blocks, kept.top);
  drives().restore(kept.drives);
  return true;
}

void prefix_runner::run(const round_options& options) {
  const std::vector<phase> phases = make_plan(options);
  if (on_history) on_history(in_words(phases));
  used_ = options.nearly_full ? 1 : 0;
  if (options.crashes && explorers_[used_] == nullptr)
    explorers_[used_] = std::make_unique<crash_explorer>(memory_, drives().all(), judge_, counts_.crash, violated_);
  exploring_ = options.crashes;
  profile_ = options.profile;
  memory_.reset();
  drives().restore({});
  known_.clear();
  for (std::size_t p = 0; p < phases.size(); ++p) {
    if (p > 0 && !crash()) break;
    run_until_crash(options, phases[p], p + 1 == phases.size());
  }
  ++counts_.rounds;
  if (options.threads > 1) ++counts_.schedules;
}

}  // namespace pmlab::verify
