// One run of an index on the simulated machine.
#include "checker/verify/round.hpp"
#include "checker/verify/complete_explorer.hpp"
#include "checker/verify/crashed_process.hpp"
#include "checker/verify/reached_code.hpp"
#include "checker/verify/seed_of_round.hpp"
#include <pmlab/base/hash.hpp>
#include <pmlab/base/random.hpp>

#include <algorithm>
#include <iterator>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include <sys/mman.h>

namespace pmlab::verify {
namespace {

// In so many accesses a thread ends an operation, or all wait for ever. Enough to fill some megabytes word by word.
constexpr std::uint64_t accesses_between_steps = 10'000'000;

}  // namespace

index_runner::index_runner(const subject& kind, round_counts& counts, std::function<void(const std::string&)> violated)
    : round_runner(kind, counts, std::move(violated)) {}
index_runner::~index_runner() = default;

// ---- the plan ----

std::string index_runner::plan() {
  set_seed_of_round(options_->seed);
  complete_.reset();
  go_on_from(nullptr);
  const simulator::heap* const dram = simulator::the_machine().dram();
  dram_before_ = dram == nullptr ? 0 : dram->live_blocks();
  growth_trial trial;
  if (code_of(kind_) != nullptr) trial = [this](const std::vector<std::uint64_t>& keys) { return try_growth(keys); };
  plan_ = make_plan(kind_, *options_, trial);
  phases_ = std::move(plan_.phases);
  const std::string text = to_string(plan_, phases_);
  // In a pool, blocks of small alignment begin in the middle of a line.
  constexpr std::size_t places[] = {16, 16, 16, 0, 32, 48};
  memory_.place_small_blocks_at(places[options_->seed % std::size(places)]);
  return text;
}

// A library recovers in a process of its own, which leaves the entries in memory that both have.
bool index_runner::know_content() {
  if (kind_.open_recovered == nullptr) return round_runner::know_content();
  struct shared {
    std::size_t count;
    indexes::entry entries[1 << 16];
  };
  static void* const area = ::mmap(nullptr, sizeof(shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) return false;
  auto& found = *static_cast<shared*>(area);
  found.count = 0;
  go_on_from(&memory_);
  simulator::machine& machine = simulator::the_machine();
  machine.begin({.access_limit = simulator::machine::patience});
  machine.use(&memory_);
  const std::string wrong = in_crashed_process(
      memory_, [&] { memory_.crash({}); },
      [&]() -> std::string {
        const std::vector<indexes::entry> entries = judge_.contents_here();
        found.count = std::min(entries.size(), std::size(found.entries));
        std::copy_n(entries.begin(), found.count, found.entries);
        return {};
      });
  end_run();
  known_.assign(found.entries, found.entries + found.count);
  // Otherwise a violation, which rounds with one phase report with its circumstances.
  return wrong.empty();
}

// An insert takes another course if it reaches code that none before it has reached, or takes far more accesses.
growth index_runner::try_growth(const std::vector<std::uint64_t>& keys) {
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
  end_run();
  return found;
}

// ---- operations ----

std::uint64_t index_runner::refusals() const {
  simulator::machine& machine = simulator::the_machine();
  return memory_.limit().refusals() + machine.limit_of_dram().refusals() + machine.limit_of_heap().refusals();
}

// A single thread may return `full` only if it was refused space itself; of many, one may for another's refusal.
std::string index_runner::has_no_right_to_be_full(std::uint64_t refusals_before) const {
  const bool alone = options_->threads == 1 && !kind_.has_threads;
  if (kind_.fills_up || refusals() != (alone ? refusals_before : 0)) return {};
  return ", and no medium refused it any space";
}

// A change that DRAM was refused for is as one that finds the medium full.
answer index_runner::perform_or_refuse(target& index, const step& s) {
  const auto perform = [&] { return index.perform(s); };
  return is_read(s.what) ? with_dram(perform) : unless_refused(perform, answer{indexes::outcome::full, {}});
}

// "" or the violation in its result.
std::string index_runner::perform(unsigned thread, const planned_step& s, buffer& scanned) {
  simulator::machine& machine = simulator::the_machine();
  target& index = target_of(thread);
  std::string wrong;
  const std::uint64_t refused = refusals();
  if (s.scan_length != 0) {
    const std::span<indexes::entry> out = std::span(scanned).first(std::min(s.scan_length, scanned.size()));
    machine.quietly([&] { history_->scan_called(thread, s.what.key); });
    const std::size_t count = with_dram([&] { return index.scan(s.what.key, out); });
    machine.quietly([&] { wrong = history_->scan_returned(thread, s.what.key, out.size(), out.first(count)); });
  } else if (s.iterates) {
    std::vector<std::uint64_t> keys;
    machine.quietly([&] {
      keys.resize(2 * history_->keys().size());
      history_->iterate_called(thread);
    });
    const std::size_t count = with_dram([&] { return index.iterate(keys); });
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
    with_dram([&] { index.find_batch(s.batch, found); });
    machine.quietly([&] {
      wrong = history_->batch_returned(thread, s.batch, found);
      std::vector<std::optional<std::uint64_t>>().swap(found);
    });
  } else if (!s.load.empty()) {
    machine.quietly([&] { history_->load_called(thread, s.load); });
    const std::size_t done = with_dram([&] { return index.load(s.load); });
    machine.quietly([&] {
      wrong = history_->load_returned(thread, done);
      if (wrong.empty() && done != s.load.size())
        if (const std::string why = has_no_right_to_be_full(refused); !why.empty())
          wrong = "load processes " + std::to_string(done) + " of " + std::to_string(s.load.size()) + " entries" + why;
    });
  } else {
    machine.quietly([&] { history_->called(thread, s.what); });
    const answer got = perform_or_refuse(index, s.what);
    machine.quietly([&] {
      wrong = history_->returned(thread, s.what, got);
      if (wrong.empty() && got.changed == indexes::outcome::full)
        if (const std::string why = has_no_right_to_be_full(refused); !why.empty())
          wrong = to_string(s.what) + " answers full" + why;
    });
  }
  machine.allow(accesses_between_steps);
  return wrong;
}

// ---- the round ----

std::unique_ptr<history_model> index_runner::make_history() const {
  if (phase_ > 0 && options_->kills) {
    auto killed = std::make_unique<history_model>(judge_.kept_history());
    killed->go_on_after_kill(known_);
    return killed;
  }
  auto history = std::make_unique<history_model>(plan_.keys);
  for (const indexes::entry& e : known_) history->there_before(e);
  return history;
}

void index_runner::begin_phase() {
  simulator::the_machine().quietly([&] {
    if (phase_ > 0) work_where_it_crashed();
    target_->know_keys(history_->keys());
    prepared_.clear();
  });
  if (phase_ != 0) return;
  prepare();
  simulator::the_machine().quietly([&] {
    for (const auto& [key, value] : prepared_) history_->there_before({key, value});
  });
}

// What recovery has repaired lies at the keys that a change was under way on when the last phase ended.
void index_runner::work_where_it_crashed() {
  const std::vector<std::uint64_t> hot = judge_.kept_history().keys_under_way();
  if (hot.empty()) return;
  constexpr std::size_t reach = 4;
  for (auto& thread : phases_[phase_]) work_at(hot, reach, thread);
  tell_history();
}

// A step moves, or not, by what it is: so it does if others are left out.
void index_runner::work_at(std::span<const std::uint64_t> hot, std::size_t reach, std::span<planned_step> steps) {
  const std::vector<std::uint64_t>& keys = plan_.keys;
  for (planned_step& s : steps) {
    splitmix64 own(mix_bits(s.what.key ^ options_->seed) ^ s.what.value);
    const bool is_one_key = s.batch.empty() && s.load.empty() && !s.iterates;
    if (!is_one_key || !own.one_in(2)) continue;
    const auto at = std::lower_bound(keys.begin(), keys.end(), hot[own.below(hot.size())]);
    const auto place = static_cast<std::size_t>(at - keys.begin());
    const std::size_t first = place - std::min(place, reach);
    s.what.key = keys[first + own.below(std::min(2 * reach + 1, keys.size() - first))];
  }
}

void index_runner::tell_history() const {
  if (on_history) on_history(to_string(plan_, phases_));
}

void index_runner::prepare() {
  if (!plan_.prepare.empty()) {
    observe(nullptr);
    // A profile needs it, to tell a store of code that is not instrumented.
    // So do several hosts: what they see differs.
    memory_.keep_log(options_->profile != nullptr || options_->hosts);
    // Nothing is verified of it.
    const simulator::recorded_code recorded = simulator::the_machine().record({});
    for (const step& s : plan_.prepare) {
      if (options_->profile != nullptr) options_->profile->operation_begins();
      const bool is_full = target_->perform(s).changed == indexes::outcome::full;
      simulator::the_machine().quietly([&] {
        if (!is_full) expect(s, prepared_);
      });
      simulator::the_machine().allow(accesses_between_steps);
    }
    simulator::the_machine().record(recorded);
    simulator::the_machine().settle();
    memory_.keep_log(true);
    observe(observer_);
  }
  simulator::space_limit::plan space = plan_.space;
  if (space.most_bytes != simulator::space_limit::never) space.most_bytes += memory_.blocks().live_bytes();
  memory_.limit(simulator::space_limit(space));
  simulator::the_machine().limit_of_dram() = simulator::space_limit(plan_.space_of_copies);
  simulator::the_machine().limit_of_heap() = simulator::space_limit(plan_.space_of_heap);
}

void index_runner::check_live() {
  // First: a walk may make durable, unobserved, links that a crash has left dirty.
  if (std::string wrong = memory_.audit(); !wrong.empty()) violated_(wrong);
  at_end(target_->check(), "check(): ");
  std::vector<indexes::entry> entries;
  target_->entries(entries);
  at_end(history_->judge(entries, false));
  check_held(target_->held_bytes(), "the index", " bytes");
}

// What only the next opening would free was lost until then: in the medium, and in DRAM.
void index_runner::check_closed() {
  // Without DRAM for a note of what readers still use, an index leaves that to its next opening.
  if (kind_.open_recovered != nullptr || options_->profile != nullptr || options_->short_dram) return;
  simulator::machine& machine = simulator::the_machine();
  // The first threads and operations leave some, which later ones use again.
  constexpr std::uint64_t reused_blocks = 24;
  const std::uint64_t left = machine.dram()->live_blocks();
  if (left > dram_before_ + reused_blocks)
    at_end("closed, it leaves " + std::to_string(left - dram_before_) + " blocks of DRAM allocated");
  if (kind_.keeps_room) return;
  memory_.limit({});
  machine.limit_of_dram() = {};
  machine.allow(simulator::machine::patience);
  const std::uint64_t closed = memory_.blocks().live_bytes();
  std::uint64_t opened = 0;
  machine.watch(true);
  {
    const std::unique_ptr<target> again = kind_.open_simulated();
    machine.watch(false);
    opened = memory_.blocks().live_bytes();
    machine.watch(true);
  }
  machine.watch(false);
  if (opened < closed)
    at_end("closed, it leaves " + std::to_string(closed - opened) + " bytes allocated that the next opening frees");
}

// ---- a complete search in place of samples ----

void index_runner::make_explorer() {
  if (options_->crash.complete == nullptr) return round_runner::make_explorer();
  complete_ = std::make_unique<complete_explorer>(memory_, judge_, counts_.complete, violated_);
}

simulator::persistence_observer& index_runner::begin_explorer(const crash_options& how) {
  if (complete_ == nullptr) return round_runner::begin_explorer(how);
  complete_->begin(options_->seed, how, phases_[phase_].front().size());
  return *complete_;
}

void index_runner::promised() {
  if (complete_ == nullptr) return round_runner::promised();
  complete_->promised();
}

void index_runner::end_exploring() {
  if (complete_ != nullptr) complete_->finish();
  round_runner::end_exploring();
}

}  // namespace pmlab::verify
