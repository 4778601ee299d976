// One run of an index on the simulated machine.
#include "checker/verify/round.hpp"
#include "checker/verify/round_schedule.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <thread>
#include <utility>

namespace pmlab::verify {
namespace {

constexpr std::size_t memory_bytes = std::size_t{64} << 20;
// More than any round needs that does not wait for ever.
constexpr std::uint64_t accesses_of_creation = 2'000'000;
constexpr std::uint64_t accesses_of_a_step = 20'000;

}  // namespace

round_runner::round_runner(const subject& kind, round_counts& counts, std::function<void(const std::string&)> violated)
    : kind_(kind),
      counts_(counts),
      violated_(std::move(violated)),
      memory_(memory_bytes),
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
  const std::uint64_t refused = refusals();
  if (s.scan_length != 0) {
    const std::span<indexes::entry> out = std::span(scanned).first(std::min(s.scan_length, scanned.size()));
    machine.quietly([&] { history_->scan_called(thread, s.what.key); });
    const std::size_t count = index_->scan(s.what.key, out);
    machine.quietly([&] { wrong = history_->scan_returned(thread, s.what.key, out.size(), out.first(count)); });
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
      if (!wrong.empty()) violated_(wrong + machine.positions());
      std::string().swap(wrong);
      if (exploring_) explorer_->promised();
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

void round_runner::prepare(const round_plan& plan) {
  if (!plan.prepare.empty()) {
    observe(nullptr);
    memory_.keep_log(false);
    for (const step& s : plan.prepare) index_->perform(s);
    simulator::the_machine().settle();
    memory_.keep_log(true);
    if (exploring_) observe(explorer_.get());
  }
  simulator::space_limit::plan space = plan.space;
  if (space.most_bytes != simulator::space_limit::never) space.most_bytes += memory_.blocks().live_bytes();
  memory_.limit(simulator::space_limit(space));
  simulator::the_machine().limit_of_dram() = simulator::space_limit(plan.space_of_copies);
}

void round_runner::observe(simulator::persistence_observer* observer) {
  memory_.observe(observer);
  drives_.observe(observer);
}

// Before the last crash, states are kept, not judged: other rounds do that.
void round_runner::begin_explorer(const round_options& options, bool last) {
  crash_options how = options.crash;
  if (!last) {
    how.points_one_in = 3;
    how.states_per_point = how.states_per_promise = 3;
    how.only_keep_one = true;
  }
  judge_.begin(history_.get());
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
  std::size_t steps = plan.prepare.size() + known_.size();
  for (const auto& of_thread : todo)
    for (const planned_step& s : of_thread) steps += 1 + s.batch.size() + s.load.size();
  how.access_limit = accesses_of_creation + steps * accesses_of_a_step;
  machine.begin(how);
  machine.use(&memory_);
  machine.use_drives(drives_.all());
  drives_.begin(options.seed ^ options.schedule_seed << 32);
  if (exploring_) begin_explorer(options, phase + 1 == plan.phases.size());
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
    observe(nullptr);
    check_live(*index);
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
  const round_plan todo = make_plan(kind_, options);
  if (on_history) on_history(to_string(todo));
  if (options.crashes && explorer_ == nullptr)
    explorer_ = std::make_unique<crash_explorer>(memory_, drives_.all(), judge_, counts_.crash, violated_);
  exploring_ = options.crashes;
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
