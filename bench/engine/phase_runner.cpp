// Measures one index in one phase.
#include "bench/engine/phase_runner.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include "bench/engine/engine.hpp"
#include "bench/engine/on_pages.hpp"
#include "bench/engine/ownership.hpp"
#include "bench/engine/simulated_run.hpp"
#include "bench/support/pm_counters.hpp"
#include "bench/support/quantity.hpp"
#include "bench/workload/keys.hpp"
#include "bench/workload/latency_histogram.hpp"
#include "bench/workload/percentile_distribution.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace pmlab::bench {
namespace {

using workload::operation;
using workload::operation_kind;
using clock = std::chrono::steady_clock;

double seconds_between(clock::time_point start, clock::time_point end) {
  return std::chrono::duration<double>(end - start).count();
}

// One operation in this many has its time taken, between two serializing reads of the clock: those cost some 40 ns,
// and stop the core from overlapping this operation with its neighbours.
constexpr std::uint64_t latency_period = 16;

// Operations between two checks of the deadline or of the progress, or two checks of answers.
constexpr std::size_t timed_chunk = 256;
constexpr std::uint64_t first_timed_round = 4096;
constexpr std::size_t untimed_chunk = std::size_t{1} << 16;
// Simulated operations are slow.
constexpr std::size_t simulated_chunk = 253;
constexpr std::size_t checked_chunk = 4096;
constexpr std::size_t checked_entries = std::size_t{1} << 20;

std::uint32_t longest_scan(std::span<const operation> operations) {
  std::uint32_t longest = 0;
  for (const operation& op : operations)
    if (op.kind == workload::operation_kind::scan) longest = std::max(longest, op.length);
  return longest;
}

// Work of one thread in one round. On lines of its own: its neighbour's is written at the same time.
struct alignas(128) share {
  std::uint64_t executed = 0;
  std::uint64_t positive = 0;
  std::uint64_t wrong = 0;
  double busy_seconds = 0;
  clock::time_point start;
  clock::time_point end;
  std::vector<std::uint64_t> intervals;
  cpu_events cpu;
  bool full = false;
};

void add_to(std::vector<std::uint64_t>& intervals, std::size_t number, std::uint64_t operations) {
  if (intervals.size() <= number) intervals.resize(number + 1);
  intervals[number] += operations;
}

}  // namespace

struct phase_runner::totals {
  explicit totals(unsigned threads) : latencies(threads), lags(threads) {}
  std::vector<workload::latency_histogram> latencies;  // one for each thread
  std::vector<std::uint64_t> lags;                     // how late each thread was at the end of its round; picoseconds
  std::vector<std::uint64_t> intervals;
  cpu_events cpu;
  std::uint64_t executed = 0;
  std::uint64_t positive = 0;
  std::uint64_t wrong = 0;
  double seconds = 0;
  double seconds_left = std::numeric_limits<double>::infinity();
  layer_statistics layer_before;
  host_sums between_hosts_before;
};

double phase_runner::weight_of(const bench_options& options, const phase& p) {
  if (options.seconds > 0 && p.kind != phase_kind::load) return options.seconds;
  const std::uint64_t records = options.trace ? options.trace->load.size() : options.records;
  const bool of_records = p.kind == phase_kind::load || p.kind == phase_kind::reopen;
  const std::uint64_t count = of_records                    ? records
                              : p.kind == phase_kind::trace ? options.trace->run.size()
                                                            : options.operations;
  return static_cast<double>(count) * p.relative_cost(options.scan_length);
}

phase_result phase_runner::measure(contender& c, const phase& p, std::uint64_t position, unsigned repeat) {
  const bool by_time = options_.seconds > 0 && p.kind != phase_kind::load;
  const bool counts = p.kind != phase_kind::reopen && !by_time;
  shown_.begin(c.description->name, p.name, weight_of(options_, p), fmt::format("{} {}", c.description->name, p.name),
               counts ? maker_.operations_of(p, c.keys) : 0);
  const std::optional<media::emulation_counts> emulated_before = c.index->emulation();
  const auto counts_of_modules = [&] { return c.has_module_counts ? read_pm_counters().counts : std::nullopt; };
  const std::optional<pm_counts> modules_before = counts_of_modules();
  phase_result result = p.kind == phase_kind::reopen ? reopen(c, p, repeat) : measure_rounds(c, p, position, repeat);
  if (const auto after = counts_of_modules(); after && modules_before) result.modules = after->since(*modules_before);
  shown_.end();
  result.invalid = doubt_about_emulation(c, emulated_before);
  return result;
}

// Why the figures of the phase are not valid for the emulated device; empty: they are.
std::string phase_runner::doubt_about_emulation(const contender& c,
                                                const std::optional<media::emulation_counts>& before) const {
  const bool by_clock = options_.medium.emulated() && !options_.medium.counted;
  if (!by_clock || c.description->place == placement::own_dram) return {};
  if (const std::size_t cpus = usable_cpus().size(); team_.size() > cpus)
    return fmt::format("{} threads share {} CPUs, and wait there for the device", team_.size(), cpus);
  constexpr double too_fast_percent = -15;
  if (options_.emulation)
    for (const media::calibration_row& row : options_.emulation->rows)
      if (row.error_percent() < too_fast_percent)
        return fmt::format("calibration: {} is {:.0f} % too fast", row.what, -row.error_percent());
  const std::optional<media::emulation_counts> after = c.index->emulation();
  if (!after) return {};
  // After a reopening they count from 0.
  const bool goes_on = before && before->late_ns <= after->late_ns && before->waited_ns <= after->waited_ns;
  const auto late = static_cast<double>(after->late_ns - (goes_on ? before->late_ns : 0));
  const auto waited = static_cast<double>(after->waited_ns - (goes_on ? before->waited_ns : 0));
  constexpr double most_late = 0.5;
  if (late <= most_late * (late + waited)) return {};
  return fmt::format("this machine was slower than the device in {:.0f} % of the emulated time",
                     100 * late / (late + waited));
}

phase_result phase_runner::measure_rounds(contender& c, const phase& p, std::uint64_t position, unsigned repeat) {
  c.index->reset_accesses();
  totals sums(team_.size());
  sums.layer_before = c.index->layer();
  sums.between_hosts_before = simulated_run::between_hosts();
  const bool by_time = options_.seconds > 0 && p.kind != phase_kind::load;
  if (by_time) sums.seconds_left = options_.seconds;
  const std::uint64_t total = maker_.operations_of(p, c.keys);
  round_place place{.phase = position, .repeat = repeat};
  while (place.done < total && sums.seconds_left > 0) {
    place.count = std::min(total - place.done, by_time ? operations_for(sums) : round_operations * team_.size());
    run_round(c, p, place, sums);
    place.done += place.count;
    ++place.round;
  }
  if (p.kind == phase_kind::load) c.keys.records = total;
  if (p.kind == phase_kind::erase) c.keys.added.clear();
  return summarize(c, p, repeat, sums);
}

// By time: as many operations as fit into the remaining time at the speed so far, and some more.
std::uint64_t phase_runner::operations_for(const totals& sums) const {
  constexpr double some_more = 1.1;
  const std::uint64_t most = round_operations * team_.size();
  if (sums.executed == 0) return first_timed_round * team_.size();
  const double rate = static_cast<double>(sums.executed) / sums.seconds;
  const double wanted = some_more * rate * sums.seconds_left;
  return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), first_timed_round, most);
}

std::size_t phase_runner::chunk_of(const contender& c, std::uint32_t longest_scan, bool by_time) const {
  // Which operations have their time taken, and which are of one batch, is the same with --verify and without.
  const bool simulated = options_.medium.simulated;
  if (simulated && options_.batch == 1) return simulated_chunk;
  if (c.expected || simulated)
    return longest_scan == 0 ? checked_chunk
                             : std::clamp<std::size_t>(checked_entries / longest_scan, 1, checked_chunk);
  if (by_time || options_.interval_seconds > 0) return timed_chunk;
  return untimed_chunk;
}

// The deadline is checked in time.
std::size_t phase_runner::chunk_at_rate() const {
  constexpr std::uint64_t chunks_per_second = 100;
  return std::clamp<std::size_t>(options_.rate / (chunks_per_second * team_.size()), 1, timed_chunk);
}

// The times at which operations of a thread begin in a round. A thread that was late at the end of the last round still
// is.
pacer phase_runner::pace_of(unsigned thread, const totals& sums) const {
  constexpr double second = 1e12;
  const double apart = second / static_cast<double>(options_.rate);
  const auto first = static_cast<std::uint64_t>(apart * thread);
  const std::uint64_t now = media::fast_clock::instance().now();
  return pacer(now + first - std::min(now, sums.lags[thread]), static_cast<std::uint64_t>(apart * team_.size()));
}

// Threads of a real machine do not begin at one instant, and which of them is the first is chance.
void phase_runner::wait_for_start(const round_place& place, unsigned thread) const {
  constexpr std::uint64_t longest_ns = 1000;
  const std::uint64_t drawn = mix_bits(mix_bits(options_.layout + place.phase * golden_ratio + place.round) + thread);
  std::this_thread::sleep_for(std::chrono::nanoseconds(1 + drawn % longest_ns));
}

void phase_runner::run_round(contender& c, const phase& p, const round_place& place, totals& sums) {
  const unsigned threads = team_.size();
  std::vector<std::vector<operation>> made(threads);
  team_.run([&](unsigned t) { made[t] = maker_.make(p, c.keys, place, t); });
  // A trace defines the order of operations on a key: they stay with one thread.
  if (p.kind == phase_kind::trace) move_to_owners(made, moved::everything);
  // On virtual time, whether answers are checked changes no figure: so it does not change who writes, either.
  if (c.expected || options_.medium.simulated) move_to_owners(made, moved::writes);
  if (c.expected) c.expected->prepare(made);
  maker_.advance(p, c.keys, made);

  std::vector<share> shares(threads);
  const bool by_time = sums.seconds_left < std::numeric_limits<double>::infinity();
  const bool is_paced = options_.rate > 0 && p.kind != phase_kind::load;
  const auto body = [&](unsigned t) {
    share& mine = shares[t];
    const std::span<const operation> operations = made[t];
    const std::uint32_t longest = longest_scan(operations);
    const bool checked = c.expected != nullptr;
    // Reading a simulated clock is a step of its thread: with --verify and without there are as many.
    const bool by_chunks = checked || options_.medium.simulated;
    const std::size_t chunk = std::min(chunk_of(c, longest, by_time), is_paced ? chunk_at_rate() : untimed_chunk);
    std::vector<answer> answers(checked ? chunk : 0);
    // On pages of its own: a simulated machine sees who shares one.
    std::vector<indexes::entry, on_pages<indexes::entry>> scanned(longest);
    std::vector<indexes::entry> kept(checked ? chunk * longest : 0);

    if (options_.medium.simulated) wait_for_start(place, t);
    std::optional<cpu_counters> counters;
    if (options_.cpu_counters) counters.emplace();
    std::optional<pacer> pace;
    if (is_paced) pace.emplace(pace_of(t, sums));
    mine.start = clock::now();
    for (std::size_t first = 0; first < operations.size() && !mine.full;) {
      const auto now = operations.subspan(first, std::min(chunk, operations.size() - first));
      const clock::time_point chunk_start = by_chunks ? clock::now() : mine.start;
      const work_done done = c.index->run({.operations = now,
                                           .answers = std::span(answers).first(checked ? now.size() : 0),
                                           .scanned = scanned,
                                           .kept = kept,
                                           .latencies = &sums.latencies[t],
                                           .latency_period = latency_period,
                                           .batch = options_.batch,
                                           .pace = pace ? &*pace : nullptr});
      mine.executed += done.executed;
      mine.positive += done.positive;
      mine.full = done.full;
      first += done.executed;
      if (!by_time) shown_.did(done.executed);
      if (by_chunks || options_.interval_seconds > 0) {
        const clock::time_point now_done = clock::now();
        mine.busy_seconds += seconds_between(chunk_start, now_done);
        if (options_.interval_seconds > 0) {
          // With --verify, time passes while the thread works, as for `seconds`.
          const double at = sums.seconds + (checked ? mine.busy_seconds : seconds_between(mine.start, now_done));
          add_to(mine.intervals, static_cast<std::size_t>(at / options_.interval_seconds), done.executed);
        }
      }
      if (checked) {
        mine.wrong += c.expected->check(t, now.first(done.executed), std::span(answers).first(done.executed), kept);
      }
      if (by_time) {
        const double spent = checked ? mine.busy_seconds : seconds_between(mine.start, clock::now());
        if (spent >= sums.seconds_left) break;
      }
    }
    mine.end = clock::now();
    if (pace) sums.lags[t] = pace->lag(media::fast_clock::instance().now());
    if (counters) mine.cpu = counters->events();
  };
  team_.run(body);

  clock::time_point first_start = clock::time_point::max();
  clock::time_point last_end = clock::time_point::min();
  double longest_busy = 0;
  bool full = false;
  for (unsigned t = 0; t < threads; ++t) {
    const share& s = shares[t];
    sums.executed += s.executed;
    sums.positive += s.positive;
    sums.wrong += s.wrong;
    first_start = std::min(first_start, s.start);
    last_end = std::max(last_end, s.end);
    longest_busy = std::max(longest_busy, s.busy_seconds);
    full |= s.full;
    sums.cpu += s.cpu;
    for (std::size_t i = 0; i < s.intervals.size(); ++i) add_to(sums.intervals, i, s.intervals[i]);
    if (p.kind == phase_kind::insert)
      for (const operation& op : std::span(made[t]).first(s.executed)) c.keys.added.push_back(op.key);
  }
  const double seconds =
      c.expected && !options_.medium.simulated ? longest_busy : seconds_between(first_start, last_end);
  sums.seconds += seconds;
  sums.seconds_left -= seconds;
  if (full) report_full(c, p, sums.executed);
}

phase_result phase_runner::summarize(contender& c, const phase& p, unsigned repeat, const totals& sums) {
  workload::latency_histogram all;
  for (const workload::latency_histogram& h : sums.latencies) all.merge(h);
  phase_result result;
  result.index = c.description->name;
  result.medium = c.medium(options_.medium);
  result.hosts = options_.hosts.front();
  result.threads = team_.size() / result.hosts;
  if (result.hosts > 1) {
    result.coherence = to_string(options_.coherence.value_or(simulator::coherence::full));
    host_sums done = simulated_run::between_hosts();
    result.between_hosts = subtract_counters(done, sums.between_hosts_before);
  }
  result.phase = p.name;
  result.repeat = repeat;
  result.operations = sums.executed;
  result.seconds = sums.seconds;
  result.throughput = sums.seconds > 0 ? static_cast<double>(sums.executed) / sums.seconds : 0;
  if (all.count() > 0)
    result.latency = {.mean = all.mean(),
                      .p50 = static_cast<double>(all.percentile(50)),
                      .p90 = static_cast<double>(all.percentile(90)),
                      .p99 = static_cast<double>(all.percentile(99)),
                      .p99_9 = static_cast<double>(all.percentile(99.9)),
                      .p99_99 = static_cast<double>(all.percentile(99.99)),
                      .max = static_cast<double>(all.max()),
                      .samples = all.count()};
  result.intervals = sums.intervals;
  if (options_.histograms) result.distribution = workload::percentile_distribution(all);
  if (sums.cpu.any()) result.cpu = sums.cpu;
  result.accesses = c.index->accesses();
  result.persists = c.index->persists();
  result.media_bytes = c.index->media_bytes();
  result.persistence = c.index->persistence();
  result.measured_under = options_.medium.persistence;
  if (c.expected) {
    result.wrong = sums.wrong;
  } else if (c.description->kept == keeps::entries) {
    // Unchecked answers can still be counted where every one of them must be the same.
    const bool all_positive = p.kind == phase_kind::load || p.kind == phase_kind::insert ||
                              p.kind == phase_kind::erase || p.kind == phase_kind::read || p.kind == phase_kind::update;
    const bool whole_records = c.keys.records == (options_.trace ? options_.trace->load.size() : options_.records);
    if (p.kind == phase_kind::absent && sums.positive > 0) result.wrong = sums.positive;
    if (all_positive && whole_records && !options_.trace && sums.positive < sums.executed)
      result.wrong = sums.executed - sums.positive;
  }
  // A walk over the index: only after phases that may have changed it.
  if (p.changes_entries() || p.kind == phase_kind::reopen || c.space.entries == 0) c.space = c.index->space();
  result.layer = counts_since(c.index->layer(), sums.layer_before);
  result.entries = c.space.entries;
  if (c.space.entries == 0) return result;
  const auto entries = static_cast<double>(c.space.entries);
  result.space = {static_cast<double>(c.space.pm_bytes) / entries, static_cast<double>(c.space.dram_bytes) / entries};
  return result;
}

namespace {

// Some indexes answer finds while a part of them, which scans need, is still being rebuilt.
restart_times first_answers(contender& c, clock::time_point start) {
  constexpr double ns_per_second = 1e9;
  constexpr std::uint32_t entries = 10;
  std::array<indexes::entry, entries> scanned;
  const auto answered = [&](const operation& one) {
    c.index->run({.operations = std::span(&one, 1), .scanned = scanned});
    return ns_per_second * seconds_between(start, clock::now());
  };
  restart_times times;
  times.find = answered({.key = workload::key_of(c.keys.first), .kind = operation_kind::read});
  if (c.description->ordered)
    times.scan = answered({.key = workload::key_of(c.keys.first), .length = entries, .kind = operation_kind::scan});
  return times;
}

}  // namespace

phase_result phase_runner::reopen(contender& c, const phase& p, unsigned repeat) {
  const std::uint64_t before = c.index->space().entries;
  c.index->reset_accesses();
  totals sums(team_.size());
  const clock::time_point start = clock::now();
  c.index->reopen();
  sums.seconds = seconds_between(start, clock::now());
  sums.executed = 1;
  sums.latencies[0].record(static_cast<std::uint64_t>(sums.seconds * 1e9));
  const restart_times restart = first_answers(c, start);
  phase_result result = summarize(c, p, repeat, sums);
  result.restart = restart;
  result.wrong = before > result.entries ? before - result.entries : result.entries - before;
  return result;
}

void phase_runner::report_full(const contender& c, const phase& p, std::uint64_t executed) const {
  const std::string done = p.kind == phase_kind::load
                               ? fmt::format("{} of {} records were loaded", executed, maker_.operations_of(p, c.keys))
                               : fmt::format("{} operations of phase {} were done", executed, p.name);
  throw error(fmt::format("{} is full: {} of {}", c.medium(options_.medium), done, c.description->name),
              fmt::format("give a larger --pool-size than {}, or fewer --records",
                          c.pool                      ? readable_bytes(c.pool->bytes_to_make())
                          : options_.medium.simulated ? readable_bytes(pool_bytes_for(*c.description, options_))
                                                      : "the machine's memory"));
}

}  // namespace pmlab::bench
