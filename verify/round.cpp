// One run of an index on the simulated machine.
#include <pmlab/verify/round.hpp>

#include <algorithm>
#include <exception>
#include <numeric>
#include <thread>
#include <utility>

namespace pmlab::verify {
namespace {

constexpr std::size_t memory_bytes = std::size_t{64} << 20;
// More than any round needs that does not wait for ever.
constexpr std::uint64_t accesses_of_creation = 2'000'000;
constexpr std::uint64_t accesses_of_a_step = 20'000;

// More than enough to split every index's nodes.
constexpr std::size_t grown_keys = 2600;

// First keys of one 32nd of the hashes, which deepen the directory there; then keys of the other half, whose segment
// splits while so many entries of the directory lead to it that they fill several lines.
std::vector<std::uint64_t> uneven_keys(const subject& kind, random& source) {
  constexpr unsigned prefix_bits = 5;
  constexpr std::uint64_t top_bit = std::uint64_t{1} << 63;
  const std::uint64_t prefix = source.next() << (64 - prefix_bits);
  std::vector<std::uint64_t> keys;
  for (std::size_t i = 0; i < grown_keys; ++i) {
    const std::uint64_t hash = source.next();
    const std::uint64_t other_half = (~prefix & top_bit) | (hash & ~top_bit);
    keys.push_back(kind.key_of_hash(i < grown_keys * 2 / 5 ? prefix | hash >> prefix_bits : other_half));
  }
  return keys;
}

// In the order in which they are hard.
std::vector<std::uint64_t> keys_of(const round_options& options, const subject& kind) {
  random source(options.seed * 31 + 7);
  if (options.grown && kind.key_of_hash != nullptr && source.one_in(2)) return uneven_keys(kind, source);
  // Dense keys share nodes and lines; the others spread over the whole range.
  constexpr key_set kinds[] = {key_set::dense,    key_set::dense,    key_set::clustered,
                               key_set::anywhere, key_set::extremes, key_set::high_bits};
  const key_set keys = kinds[source.below(std::size(kinds))];
  const bool tame = keys == key_set::dense || keys == key_set::anywhere;
  return make_keys(kind.modest && !tame ? key_set::dense : keys, options.grown ? grown_keys : options.keys, source);
}

}  // namespace

std::string to_string(const planned_step& s) {
  if (s.scan_length == 0) return to_string(s.what);
  return "scan(" + std::to_string(s.what.key) + ", " + std::to_string(s.scan_length) + ")";
}

round_plan round_runner::plan(const round_options& options) const {
  round_plan plan;
  plan.keys = keys_of(options, kind_);
  random source(options.seed * 1000003 + 11);
  std::uint64_t unique = 1000;
  if (options.grown) {
    const std::size_t count = entries_before_a_split(plan.keys, source);
    for (std::size_t i = 0; i < count; ++i) plan.preload.push_back({plan.keys[i], ++unique});
  }
  const std::size_t present = plan.preload.size();
  std::size_t next_new = present;
  plan.threads.resize(options.threads);
  // A part of the rounds only adds keys, so that nodes fill and split; another one adds and then removes them, so that
  // nodes empty again; the others stay where they are.
  const bool adds = options.grown || source.one_in(2);
  const bool removes = !adds && source.one_in(2);
  // With threads, a quarter of the rounds goes for a few keys mostly: what one thread does another one is to see half done.
  const std::size_t hot = options.threads > 1 && !options.grown && source.one_in(4) ? 3 + source.below(6) : 0;
  const step_mix adding{.insert = 60, .update = 8, .upsert = 14, .erase = 8};
  const step_mix removing{.insert = 6, .update = 4, .upsert = 4, .erase = 76};
  // What a cache may get wrong is seen by readers: in half of its rounds most operations are theirs.
  const bool reads = kind_.has_threads && source.one_in(2);
  const step_mix reading{.insert = 12, .update = 8, .upsert = 4, .erase = 6};
  const auto mix_of = [&](std::size_t i) {
    if (reads) return reading;
    if (hot != 0 || (!adds && !removes)) return step_mix{};
    return removes && i >= options.operations / 2 ? removing : adding;
  };
  std::size_t number = 0;
  for (unsigned t = 0; t < options.threads; ++t)
    for (std::size_t i = 0; i < options.operations; ++i, ++number) {
      planned_step s;
      s.what = {random_action(source, mix_of(i)), plan.keys[source.below(plan.keys.size())],
                source.one_in(4) && !kind_.modest ? source.below(3) : ++unique};
      if (kind_.modest && s.what.what == action::upsert) s.what.what = action::insert;
      if (hot != 0 && !source.one_in(4)) s.what.key = plan.keys[source.below(std::min(hot, plan.keys.size()))];
      const bool adds_key = s.what.what == action::insert || s.what.what == action::upsert;
      if (options.grown && adds_key && next_new < plan.keys.size()) s.what.key = plan.keys[next_new++];
      if (kind_.ordered && source.one_in(24))
        s.scan_length = 1 + source.below(source.one_in(4) ? std::min<std::size_t>(plan.keys.size(), 120) + 2 : 16);
      const bool kept =
          options.steps.empty() || std::find(options.steps.begin(), options.steps.end(), number) != options.steps.end();
      if (kept) plan.threads[t].push_back(s);
    }
  std::sort(plan.keys.begin(), plan.keys.end());
  return plan;
}

// How many of the keys it takes to be just before an operation that allocates: tried out on plain memory.
std::size_t round_runner::entries_before_a_split(const std::vector<std::uint64_t>& keys, random& source) const {
  if (kind_.open_image == nullptr) return keys.size() / 2;
  image_medium medium(memory_bytes);
  medium.begin(simulator::persistent_memory::first_block, std::make_shared<simulator::block_table::extents>(), 0);
  const std::unique_ptr<target> index = kind_.open_image(medium);
  std::vector<std::size_t> splits;
  std::uint64_t bytes = medium.used().allocated_bytes;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    index->perform({action::insert, keys[i], i});
    const std::uint64_t now = medium.used().allocated_bytes;
    if (now != bytes) splits.push_back(i);
    bytes = now;
  }
  const std::size_t at = splits.empty() ? keys.size() / 2 : splits[source.below(splits.size())];
  const std::size_t before = source.below(6);
  return at > before ? at - before : 0;
}

void round_runner::preload(const std::vector<indexes::entry>& entries) {
  if (entries.empty()) return;
  memory_.observe(nullptr);
  memory_.keep_log(false);
  for (const indexes::entry& e : entries) {
    index_->perform({action::insert, e.key, e.value});
    promises_->preloaded(e);
  }
  simulator::the_machine().settle();
  memory_.keep_log(true);
  if (exploring_) memory_.observe(explorer_.get());
}

round_runner::round_runner(const subject& kind, round_counts& counts, std::function<void(const std::string&)> violated)
    : kind_(kind), counts_(counts), violated_(std::move(violated)), memory_(memory_bytes) {}
round_runner::~round_runner() = default;

std::unique_ptr<simulator::schedule> round_runner::make_schedule(const round_options& options) const {
  if (options.threads == 1 && !kind_.has_threads) return nullptr;
  if (options.how == search::random || options.threads == 1)
    return std::make_unique<random_schedule>(options.schedule_seed);
  // Seed 0 pre-empts nowhere and so measures the run; then one pre-emption at every place; then two, at random places.
  const std::uint64_t length = std::max<std::uint64_t>(accesses_before_, 1);
  const unsigned others = options.threads - 1;
  if (options.schedule_seed == 0) return std::make_unique<bounded_schedule>(0, std::vector<preemption>{});
  const std::uint64_t number = options.schedule_seed - 1;
  if (number < length * others)
    return std::make_unique<bounded_schedule>(
        0, std::vector<preemption>{{number / others + 1, static_cast<unsigned>(number % others) + 1}});
  random source(options.schedule_seed);
  std::vector<preemption> two(2);
  for (preemption& p : two) p = {source.below(length) + 1, static_cast<unsigned>(source.below(others)) + 1};
  std::sort(two.begin(), two.end(), [](const auto& a, const auto& b) { return a.access < b.access; });
  return std::make_unique<bounded_schedule>(static_cast<unsigned>(source.below(options.threads)), std::move(two));
}

void round_runner::drive(unsigned thread, const std::vector<planned_step>& steps) {
  simulator::machine& machine = simulator::the_machine();
  // Made and filled unwatched: they are the driver's, not the index's.
  std::vector<indexes::entry> scanned;
  machine.quietly([&] { scanned.resize(promises_->keys().size() + 4); });
  for (const planned_step& s : steps) {
    machine.quietly(
        [&] { s.scan_length != 0 ? promises_->scan_called(thread, s.what.key) : promises_->called(thread, s.what); });
    answer got;
    std::size_t count = 0;
    const std::span<indexes::entry> out = std::span(scanned).first(std::min(s.scan_length, scanned.size()));
    if (s.scan_length != 0)
      count = index_->scan(s.what.key, out);
    else
      got = index_->perform(s.what);
    machine.quietly([&] {
      const std::string wrong = s.scan_length != 0
                                    ? promises_->scan_returned(thread, s.what.key, out.size(), out.first(count))
                                    : promises_->returned(thread, s.what, got);
      if (!wrong.empty()) violated_(wrong + machine.positions());
      if (exploring_) explorer_->promised();
    });
  }
  machine.quietly([&] { std::vector<indexes::entry>().swap(scanned); });
}

void round_runner::check_live(target& index) {
  std::vector<indexes::entry> entries;
  if (std::string wrong = index.check(); !wrong.empty()) violated_("at the end of the run, check(): " + wrong);
  index.entries(entries);
  if (std::string wrong = promises_->judge(entries); !wrong.empty()) violated_("at the end of the run, " + wrong);
  const auto held = index.held_bytes();
  if (held && *held != memory_.blocks().live_bytes())
    violated_("at the end of the run, the index holds " + std::to_string(*held) + " bytes, and " +
              std::to_string(memory_.blocks().live_bytes()) + " are allocated");
  if (std::string wrong = memory_.audit(); !wrong.empty()) violated_(wrong);
}

void round_runner::run(const round_options& options) {
  simulator::machine& machine = simulator::the_machine();
  const round_plan todo = plan(options);
  if (on_plan) on_plan(todo);
  promises_ = std::make_unique<promises>(todo.keys);
  const std::unique_ptr<simulator::schedule> schedule = make_schedule(options);
  if (options.crashes && explorer_ == nullptr)
    explorer_ = std::make_unique<crash_explorer>(kind_, memory_, counts_.crash, violated_);
  exploring_ = options.crashes;

  memory_.reset();
  simulator::machine_options how;
  how.who = schedule.get();
  std::size_t steps = todo.preload.size();
  for (const auto& of_thread : todo.threads) steps += of_thread.size();
  how.access_limit = accesses_of_creation + steps * accesses_of_a_step;
  machine.begin(how);
  machine.use(&memory_);
  if (exploring_) {
    explorer_->begin(promises_.get(), options.seed ^ options.schedule_seed << 32, options.crash);
    memory_.observe(explorer_.get());
  }
  {
    machine.watch(true);
    const std::unique_ptr<target> index = kind_.open_simulated();
    index_ = index.get();
    index->know_keys(promises_->keys());
    preload(todo.preload);
    if (options.threads == 1) {
      drive(0, todo.threads[0]);
    } else {
      machine.quietly([&] {
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < options.threads; ++t)
          threads.emplace_back([this, t, &todo] { drive(t, todo.threads[t]); });
        for (std::thread& t : threads) t.join();
      });
    }
    machine.watch(false);
    memory_.observe(nullptr);
    check_live(*index);
    machine.watch(true);
  }
  machine.watch(false);
  if (options.how == search::bounded && options.schedule_seed == 0) accesses_before_ = machine.accesses();
  counts_.accesses += machine.accesses();
  ++counts_.rounds;
  if (options.threads > 1) ++counts_.schedules;
  machine.end();
  if (kind_.after_run != nullptr) kind_.after_run();
  if (machine.dram()->live_blocks() == 0) machine.dram()->reset();
}

}  // namespace pmlab::verify
