// One run of an index on the simulated machine.
#include "checker/verify/round.hpp"
#include "checker/verify/complete_explorer.hpp"
#include "checker/verify/flush_profile.hpp"
#include "checker/verify/library_subject.hpp"
#include "checker/verify/reached_code.hpp"
#include "checker/verify/round_schedule.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <thread>
#include <utility>

namespace pmlab::verify {
namespace {

// In so many accesses a thread ends an operation, or all wait for ever. Enough to fill some megabytes word by word.
constexpr std::uint64_t accesses_between_steps = 10'000'000;

}  // namespace

round_runner::round_runner(const subject& kind, round_counts& counts, std::function<void(const std::string&)> violated)
    : kind_(kind),
      counts_(counts),
      violated_(std::move(violated)),
      memory_(memory_bytes_of(kind)),
      drives_(kind.drives),
      judge_(kind) {}
round_runner::~round_runner() = default;

std::uint64_t round_runner::refusals() const {
  return memory_.limit().refusals() + simulator::the_machine().limit_of_dram().refusals();
}

// A single thread may return `full` only if it was refused space itself; of many, one may for another's refusal.
std::string round_runner::has_no_right_to_be_full(std::uint64_t refusals_before) const {
  if (kind_.fills_up || refusals() != (alone_ ? refusals_before : 0)) return {};
  return ", and no medium refused it any space";
}

// "" or the violation in its result.
std::string round_runner::perform(unsigned thread, const planned_step& s, std::vector<indexes::entry>& scanned) {
  simulator::machine& machine = simulator::the_machine();
  std::string wrong;
  if (profile_ != nullptr) profile_->operation_begins();
  const std::uint64_t refused = refusals();
  if (s.scan_length != 0) {
    const std::span<indexes::entry> out = std::span(scanned).first(std::min(s.scan_length, scanned.size()));
    machine.quietly([&] { history_->scan_called(thread, s.what.key); });
    const std::size_t count = index_->scan(s.what.key, out);
    machine.quietly([&] { wrong = history_->scan_returned(thread, s.what.key, out.size(), out.first(count)); });
  } else if (s.iterates) {
    std::vector<std::uint64_t> keys;
    machine.quietly([&] {
      keys.resize(2 * history_->keys().size());
      history_->iterate_called(thread);
    });
    const std::size_t count = index_->iterate(keys);
    machine.quietly([&] {
      wrong = history_->iterate_returned(thread, std::span(keys).first(std::min(count, keys.size())));
      std::vector<std::uint64_t>().swap(keys);
    });
  } else if (!s.batch.empty()) {
    std::vector<std::optional<std::uint64_t>> found;
    machine.quietly([&] {
      found.resize(s.batch.size());
      history_->batch_called(thread, s.batch);
    });
    index_->find_batch(s.batch, found);
    machine.quietly([&] {
      wrong = history_->batch_returned(thread, s.batch, found);
      std::vector<std::optional<std::uint64_t>>().swap(found);
    });
  } else if (!s.load.empty()) {
    machine.quietly([&] { history_->load_called(thread, s.load); });
    const std::size_t done = index_->load(s.load);
    machine.quietly([&] {
      wrong = history_->load_returned(thread, done);
      if (wrong.empty() && done != s.load.size())
        if (const std::string why = has_no_right_to_be_full(refused); !why.empty())
          wrong = "load processes " + std::to_string(done) + " of " + std::to_string(s.load.size()) + " entries" + why;
    });
  } else {
    machine.quietly([&] { history_->called(thread, s.what); });
    const answer got = index_->perform(s.what);
    machine.quietly([&] {
      wrong = history_->returned(thread, s.what, got);
      if (wrong.empty() && got.changed == indexes::outcome::full)
        if (const std::string why = has_no_right_to_be_full(refused); !why.empty())
          wrong = to_string(s.what) + " answers full" + why;
    });
  }
  return wrong;
}

void round_runner::drive(unsigned thread, const round_plan::thread_steps& steps) {
  simulator::machine& machine = simulator::the_machine();
  // Made and filled unwatched: they are the driver's, not the index's.
  std::vector<indexes::entry> scanned;
  machine.quietly([&] { scanned.resize(history_->keys().size() + 4); });
  for (const planned_step& s : steps) {
    std::string wrong = perform(thread, s, scanned);
    machine.quietly([&] {
      machine.allow(accesses_between_steps);
      if (!wrong.empty()) violated_(wrong + machine.positions());
      std::string().swap(wrong);
      if (complete_ != nullptr)
        complete_->promised();
      else if (exploring_)
        explorer_->promised();
    });
  }
  machine.quietly([&] { std::vector<indexes::entry>().swap(scanned); });
}

void round_runner::check_live(target& index) {
  std::vector<indexes::entry> entries;
  // First: a walk may make durable, unobserved, links that a crash has left dirty.
  if (std::string wrong = memory_.audit(); !wrong.empty()) violated_(wrong);
  if (std::string wrong = index.check(); !wrong.empty()) violated_("at the end of the run, check(): " + wrong);
  index.entries(entries);
  if (std::string wrong = history_->judge(entries); !wrong.empty()) violated_("at the end of the run, " + wrong);
  const auto held = index.held_bytes();
  if (held && *held != memory_.blocks().live_bytes())
    violated_("at the end of the run, the index holds " + std::to_string(*held) + " bytes, and " +
              std::to_string(memory_.blocks().live_bytes()) + " are allocated");
}

// An insert takes another course if it reaches code that none before it has reached, or takes far more accesses.
growth round_runner::try_growth(const std::vector<std::uint64_t>& keys) {
  constexpr std::size_t first_ones = 8;  // all of their code is new
  constexpr std::uint64_t far_more = 16;
  constexpr std::uint64_t most_accesses = 60'000'000;
  simulator::machine& machine = simulator::the_machine();
  growth found;
  std::vector<std::uint8_t> marks;
  memory_.reset();
  machine.begin({.access_limit = simulator::machine::patience});
  machine.use(&memory_);
  memory_.keep_log(false);
  const simulator::recorded_code recorded = machine.record(code_of(kind_)->object(marks));
  machine.watch(true);
  {
    const std::unique_ptr<target> index = kind_.open_simulated();
    std::uint64_t usual = 0;
    for (std::size_t i = 0; i < keys.size() && machine.accesses() < most_accesses; ++i) {
      const std::uint64_t accesses = machine.accesses();
      const std::uint64_t places = machine.new_places();
      if (index->perform({action::insert, keys[i], i + 1}).changed != indexes::outcome::inserted) break;
      machine.allow(accesses_between_steps);
      const std::uint64_t taken = machine.accesses() - accesses;
      machine.quietly([&] {
        if (i >= first_ones && machine.new_places() != places) found.changes.push_back(i);
        if (i >= first_ones && taken > far_more * usual) found.large_changes.push_back(i);
      });
      if (i < first_ones || taken <= far_more * usual) usual = (7 * usual + taken + 7) / 8;
      found.inserted = i + 1;
    }
  }
  machine.watch(false);
  machine.record(recorded);
  machine.end();
  if (kind_.after_run != nullptr) kind_.after_run();
  if (machine.dram()->live_blocks() == 0) machine.dram()->reset();
  return found;
}

void round_runner::prepare(const round_plan& plan) {
  if (!plan.prepare.empty()) {
    observe(nullptr);
    // A profile needs it, to tell a store of code that is not instrumented.
    memory_.keep_log(profile_ != nullptr);
    // Nothing is verified of it.
    const simulator::recorded_code recorded = simulator::the_machine().record({});
    for (const step& s : plan.prepare) {
      if (profile_ != nullptr) profile_->operation_begins();
      index_->perform(s);
      simulator::the_machine().allow(accesses_between_steps);
    }
    simulator::the_machine().record(recorded);
    simulator::the_machine().settle();
    memory_.keep_log(true);
    if (exploring_) observe(explorer());
  }
  simulator::space_limit::plan space = plan.space;
  if (space.most_bytes != simulator::space_limit::never) space.most_bytes += memory_.blocks().live_bytes();
  memory_.limit(simulator::space_limit(space));
  simulator::the_machine().limit_of_dram() = simulator::space_limit(plan.space_of_copies);
}

simulator::persistence_observer* round_runner::explorer() const noexcept {
  if (complete_ != nullptr) return complete_.get();
  return explorer_.get();
}

void round_runner::observe(simulator::persistence_observer* observer) {
  memory_.observe(observer);
  drives_.observe(observer);
}

// Before the last crash, states are kept, not judged: other rounds do that.
void round_runner::begin_explorer(const round_options& options, const round_plan::phase& todo, bool last) {
  crash_options how = options.crash;
  if (!last) {
    how.points_one_in = 3;
    how.states_per_point = how.states_per_promise = 3;
    how.only_keep_one = true;
  }
  judge_.begin(history_.get());
  if (complete_ != nullptr) {
    complete_->begin(options.seed, how, todo.front().size());
    return observe(complete_.get());
  }
  explorer_->begin(options.seed ^ options.schedule_seed << 32, how);
  observe(explorer_.get());
}

void round_runner::run_until_crash(const round_options& options, const round_plan& plan, std::size_t phase) {
  simulator::machine& machine = simulator::the_machine();
  const round_plan::phase& todo = plan.phases[phase];
  history_ = std::make_unique<history_model>(plan.keys);
  for (const indexes::entry& e : known_) history_->there_before(e);
  const std::unique_ptr<simulator::schedule> schedule = schedule_of(options, kind_.has_threads, accesses_before_);
  simulator::machine_options how;
  how.who = schedule.get();
  how.store_buffers = store_buffers_of(options);
  how.access_limit = simulator::machine::patience;
  machine.begin(how);
  machine.use(&memory_);
  if (options.profile != nullptr) options.profile->begin();
  machine.use_drives(drives_.all());
  drives_.begin(options.seed ^ options.schedule_seed << 32);
  if (exploring_) begin_explorer(options, todo, phase + 1 == plan.phases.size());
  {
    machine.watch(true);
    const std::unique_ptr<target> index = kind_.open_simulated();
    index_ = index.get();
    machine.quietly([&] {
      index->know_keys(history_->keys());
      if (phase == 0)
        for (const auto& [key, value] : plan.before) history_->there_before({key, value});
    });
    if (phase == 0) prepare(plan);
    if (options.threads == 1) {
      drive(0, todo[0]);
    } else {
      machine.quietly([&] {
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < options.threads; ++t) threads.emplace_back([this, t, &todo] { drive(t, todo[t]); });
        for (std::thread& t : threads) t.join();
      });
    }
    machine.watch(false);
    if (complete_ != nullptr) complete_->finish();
    observe(nullptr);
    check_live(*index);
    if (options.nearly_full && phase + 1 == plan.phases.size()) {
      judge_.begin(history_.get());
      if (std::string wrong = judge_.fill_again(*index, true); !wrong.empty())
        violated_("at the end of the run, " + wrong);
    }
    machine.watch(true);
  }
  machine.watch(false);
  if (options.how == search::bounded && options.schedule_seed == 0) accesses_before_ = machine.accesses();
  counts_.accesses += machine.accesses();
  machine.end();
  if (kind_.after_run != nullptr) kind_.after_run();
  if (machine.dram()->live_blocks() == 0) machine.dram()->reset();
}

// Replaces the memory by the image of one of the crashes, and `known_` by its content. False: there was no crash.
bool round_runner::crash() {
  const kept_crash& kept = explorer_->kept();
  if (kept.blocks == nullptr) return false;
  known_ = judge_.entries_in(explorer_->image_of_kept());
  memory_.reset();
  memory_.restore(kept.bytes.data(), kept.bytes.size());
  memory_.restore_blocks(*kept.blocks, kept.top);
  drives_.restore(kept.drives);
  return true;
}

void round_runner::run(const round_options& options) {
  growth_trial trial;
  if (code_of(kind_) != nullptr) trial = [this](const std::vector<std::uint64_t>& keys) { return try_growth(keys); };
  const round_plan todo = make_plan(kind_, options, trial);
  if (on_history) on_history(to_string(todo));
  complete_.reset();
  if (options.crashes && options.crash.complete != nullptr)
    complete_ = std::make_unique<complete_explorer>(memory_, judge_, counts_.complete, violated_);
  else if (options.crashes && explorer_ == nullptr)
    explorer_ = std::make_unique<crash_explorer>(memory_, drives_.all(), judge_, counts_.crash, violated_);
  exploring_ = options.crashes;
  profile_ = options.profile;
  alone_ = options.threads == 1 && !kind_.has_threads;
  // In a pool, blocks of small alignment begin in the middle of a line.
  constexpr std::size_t places[] = {16, 16, 16, 0, 32, 48};
  memory_.place_small_blocks_at(places[options.seed % std::size(places)]);
  memory_.reset();
  drives_.restore({});
  known_.clear();
  for (std::size_t phase = 0; phase < todo.phases.size(); ++phase) {
    if (phase > 0 && !crash()) break;
    run_until_crash(options, todo, phase);
  }
  ++counts_.rounds;
  if (options.threads > 1) ++counts_.schedules;
}

}  // namespace pmlab::verify
