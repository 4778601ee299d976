// One run of a volume on the simulated machine.
#include "checker/verify/volume_round.hpp"
#include "checker/verify/flush_profile.hpp"

#include "checker/verify/round_schedule.hpp"
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/buffer.hpp>

#include <algorithm>
#include <span>
#include <thread>
#include <utility>

namespace pmlab::verify {
namespace {

constexpr std::size_t memory_bytes = std::size_t{64} << 20;
// More than any round needs that does not wait for ever.
constexpr std::uint64_t accesses_of_creation = 2'000'000;
constexpr std::uint64_t accesses_of_a_step = 50'000;

std::uint64_t seed_of(const round_options& options) { return options.seed ^ options.schedule_seed << 32; }

std::string in_words(const std::vector<std::vector<std::vector<volume_step>>>& phases) {
  std::string text;
  for (std::size_t p = 0; p < phases.size(); ++p) {
    if (p > 0) text.append("(a crash)\n");
    for (std::size_t t = 0; t < phases[p].size(); ++t)
      for (const volume_step& s : phases[p][t]) {
        if (phases[p].size() > 1) text.append("thread ").append(std::to_string(t)).append(": ");
        text.append(to_string(s)).append("\n");
      }
  }
  return text;
}

}  // namespace

volume_runner::volume_runner(const subject& kind, round_counts& counts,
                             std::function<void(const std::string&)> violated)
    : kind_(kind),
      shape_(kind.volume->shape),
      counts_(counts),
      violated_(std::move(violated)),
      memory_(memory_bytes),
      drives_{drive_set(kind.drives), drive_set(kind.small_drives.empty() ? kind.drives : kind.small_drives)},
      judge_(*kind.volume) {}
volume_runner::~volume_runner() = default;

// ---- the plan ----

std::vector<volume_runner::phase> volume_runner::make_plan(const round_options& options) const {
  splitmix64 source(options.seed * 977 + 5);
  std::uint32_t number = 0;
  const bool hot = source.one_in(2);
  splitmix64 spans(options.seed * 613 + 9);  // the lengths of reads: the other steps do not depend on them
  const auto a_step = [&] {
    volume_step s;
    std::uint64_t first = source.below(shape_.blocks);
    if (hot && !source.one_in(3)) first %= shape_.chunk_blocks;
    const std::uint64_t in_chunk = shape_.chunk_blocks - first % shape_.chunk_blocks;
    // Some go on in the next chunk.
    const std::uint64_t most = source.one_in(8) ? 2 * std::uint64_t{shape_.chunk_blocks} : in_chunk;
    const std::uint64_t count = 1 + source.below(std::min(most, shape_.blocks - first));
    s.ranges = {{first, static_cast<std::uint32_t>(count)}};
    const std::uint64_t kind = source.below(10);
    s.what = kind < 6                       ? volume_step::action::write
             : kind == 6 && shape_.discards ? volume_step::action::discard
                                            : volume_step::action::read;
    if (s.what == volume_step::action::read && spans.one_in(3)) {
      // To the end of the chunk and on.
      const std::uint64_t more = in_chunk + 1 + spans.below(shape_.chunk_blocks);
      s.ranges.front().count = static_cast<std::uint32_t>(std::min(more, shape_.blocks - first));
    }
    if (s.what != volume_step::action::write) return s;
    s.number = ++number;
    if (!shape_.groups || !source.one_in(5)) return s;
    // Some blocks of the chunk, in ascending order.
    s.ranges.clear();
    const std::uint64_t start = first - first % shape_.chunk_blocks;
    for (std::uint64_t b = start; b < std::min<std::uint64_t>(start + shape_.chunk_blocks, shape_.blocks); ++b)
      if (source.one_in(2)) s.ranges.push_back({b, 1});
    if (s.ranges.empty()) s.ranges = {{first, 1}};
    return s;
  };
  std::vector<phase> phases(1 + options.reopenings);
  std::size_t step = 0;
  for (phase& p : phases) {
    p.resize(options.threads);
    for (thread_steps& steps : p)
      for (std::size_t i = 0; i < options.operations; ++i, ++step) {
        volume_step s = a_step();
        if (options.steps.empty() || std::find(options.steps.begin(), options.steps.end(), step) != options.steps.end())
          steps.push_back(std::move(s));
      }
  }
  return phases;
}

// ---- operations ----

void volume_runner::fill(const volume_step& s, std::span<std::byte> data) const {
  std::size_t at = 0;
  for (const block_range& r : s.ranges)
    for (std::uint64_t b = r.first; b < r.first + r.count; ++b, at += shape_.block_bytes)
      fill_block(data.subspan(at, shape_.block_bytes), s.number, b);
}

std::string volume_runner::read_numbers(const volume_step& s, std::span<const std::byte> data,
                                        std::vector<std::uint32_t>& numbers) const {
  const block_range& r = s.ranges.front();
  numbers.resize(r.count);
  for (std::uint32_t b = 0; b < r.count; ++b)
    if (std::string wrong =
            read_block(data.subspan(std::size_t{b} * shape_.block_bytes, shape_.block_bytes), r.first + b, numbers[b]);
        !wrong.empty())
      return to_string(s) + ": " + wrong;
  return {};
}

// "" or the violation in its result.
std::string volume_runner::perform(unsigned thread, const volume_step& s, std::span<std::byte> data) {
  simulator::machine& machine = simulator::the_machine();
  std::string wrong;
  data = data.first(std::size_t{s.blocks()} * shape_.block_bytes);
  machine.quietly([&] {
    history_->called(thread, s);
    if (s.what == volume_step::action::write) fill(s, data);
  });
  if (s.what == volume_step::action::read) {
    volume_->read(s.ranges.front().first, data);
    machine.quietly([&] {
      std::vector<std::uint32_t> numbers;
      wrong = read_numbers(s, data, numbers);
      if (wrong.empty()) wrong = history_->returned(thread, s, numbers);
    });
    return wrong;
  }
  const bool done = s.what == volume_step::action::discard ? volume_->discard(s.ranges.front())
                    : s.ranges.size() > 1                  ? volume_->write_group(s.ranges, data)
                                                           : volume_->write(s.ranges.front().first, data);
  machine.quietly([&] {
    wrong = history_->returned(thread, s, {}, !done);
    if (wrong.empty() && !done && !shape_.fills_up && memory_.limit().refusals() == 0)
      wrong = to_string(s) + " answers full, and no medium refused it any space";
  });
  return wrong;
}

void volume_runner::drive(unsigned thread, const thread_steps& steps) {
  simulator::machine& machine = simulator::the_machine();
  // The driver's own: made unwatched.
  blocks::buffer buffer;
  machine.quietly([&] { buffer = blocks::buffer(std::size_t{shape_.blocks} * shape_.block_bytes); });
  for (const volume_step& s : steps) {
    if (profile_ != nullptr) profile_->operation_begins();
    std::string wrong = perform(thread, s, buffer.bytes());
    machine.quietly([&] {
      if (!wrong.empty()) violated_(wrong + machine.positions());
      std::string().swap(wrong);
      if (exploring_) explorer().promised();
    });
  }
  machine.quietly([&] { buffer = blocks::buffer(); });
}

void volume_runner::check_live(volume_target& volume) {
  if (std::string wrong = memory_.audit(); !wrong.empty()) violated_(wrong);
  if (std::string wrong = volume.check(); !wrong.empty()) violated_("at the end of the run, check(): " + wrong);
  std::string wrong;
  const std::vector<std::uint32_t> numbers = judge_.numbers_in(volume, wrong);
  if (wrong.empty()) wrong = history_->judge(numbers);
  if (!wrong.empty()) violated_("at the end of the run, " + wrong);
  const auto held = volume.held_bytes();
  if (held && *held != memory_.blocks().live_bytes())
    violated_("at the end of the run, the store holds " + std::to_string(*held) + " bytes of the memory, and " +
              std::to_string(memory_.blocks().live_bytes()) + " are allocated");
}

// ---- the round ----

void volume_runner::observe(simulator::persistence_observer* observer) {
  memory_.observe(observer);
  drives().observe(observer);
}

// Before the last crash, states are kept, not judged: other rounds do that.
void volume_runner::begin_explorer(const round_options& options, bool last) {
  crash_options how = options.crash;
  if (!last) {
    how.points_one_in = 3;
    how.states_per_point = how.states_per_promise = 3;
    how.only_keep_one = true;
  }
  judge_.begin(history_.get());
  explorer().begin(seed_of(options), how);
  observe(&explorer());
}

void volume_runner::limit_space(const round_options& options) {
  splitmix64 source(options.seed * 31 + 11);
  if (options.full)
    memory_.limit(simulator::space_limit(
        {.spare = source.below(20), .refused = 1 + source.below(6), .one_in = 1 + source.below(2)}));
}

void volume_runner::run_until_crash(const round_options& options, const phase& todo, bool last) {
  simulator::machine& machine = simulator::the_machine();
  history_ = std::make_unique<volume_model>(shape_);
  if (!known_.empty()) history_->there_before(known_);
  const std::unique_ptr<simulator::schedule> schedule = schedule_of(options, kind_.has_threads, accesses_before_);
  simulator::machine_options how;
  how.who = schedule.get();
  how.store_buffers = store_buffers_of(options);
  how.access_limit = accesses_of_creation + options.threads * options.operations * accesses_of_a_step;
  machine.begin(how);
  machine.use(&memory_);
  if (options.profile != nullptr) options.profile->begin();
  machine.use_drives(drives().all());
  drives().begin(seed_of(options));
  if (exploring_) begin_explorer(options, last);
  {
    machine.watch(true);
    const std::unique_ptr<volume_target> volume = kind_.volume->open_simulated();
    volume_ = volume.get();
    machine.quietly([&] { limit_space(options); });
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
    check_live(*volume);
    if (options.nearly_full && last)
      if (std::string wrong = judge_.fill_again(*volume, true); !wrong.empty())
        violated_("at the end of the run, " + wrong);
    machine.watch(true);
  }
  machine.watch(false);
  if (options.how == search::bounded && options.schedule_seed == 0) accesses_before_ = machine.accesses();
  counts_.accesses += machine.accesses();
  machine.end();
  if (machine.dram()->live_blocks() == 0) machine.dram()->reset();
}

// Replaces memory and drives by the image of one of the crashes, and `known_` by its content. False: there was no crash.
bool volume_runner::crash() {
  const kept_crash& kept = explorer().kept();
  if (kept.blocks == nullptr) return false;
  known_ = judge_.numbers_in(explorer().image_of_kept());
  memory_.reset();
  memory_.restore(kept.bytes.data(), kept.bytes.size());
  memory_.restore_blocks(*kept.blocks, kept.top);
  drives().restore(kept.drives);
  return true;
}

void volume_runner::run(const round_options& options) {
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
