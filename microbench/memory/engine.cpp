// Measures the cases of a suite.
#include "microbench/memory/engine.hpp"
#include <pmlab/base/error.hpp>
#include "bench/devices/profile_file.hpp"
#include "bench/engine/simulated_run.hpp"
#include "bench/engine/summary.hpp"
#include "bench/support/quantity.hpp"
#include "bench/support/thread_team.hpp"
#include "microbench/memory/figures.hpp"
#include "microbench/memory/lane.hpp"
#include "microbench/memory/method.hpp"
#include "microbench/memory/numa.hpp"
#include "microbench/memory/room.hpp"
#include "microbench/memory/suite_run.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace pmlab::microbench {
namespace {

constexpr double bytes_per_gib = 1073741824;

// Simulated threads do not begin at the same time: waking them takes some. All are ready this long after the last one
// ended.
constexpr std::uint64_t start_after = 100'000'000;  // picoseconds

// Each lane has the next seed.
constexpr std::uint64_t seeds_of_layout = 1024;

}  // namespace

// Sums over the lanes of one side in one repetition.
struct side_sums {
  unsigned threads = 0;
  std::uint64_t accesses = 0;
  double bytes_per_ps = 0;
  double ps_per_access = 0;  // summed over threads
  std::vector<std::uint64_t> samples;

  void add(const bench_case& c, lane_result& r) {
    ++threads;
    accesses += r.accesses;
    if (r.accesses == 0 || r.time == 0) return;
    const auto count = static_cast<double>(r.accesses);
    const auto time = static_cast<double>(r.time);
    bytes_per_ps += count * static_cast<double>(c.access_bytes) / time;
    ps_per_access += time / count;
    samples.insert(samples.end(), r.samples.begin(), r.samples.end());
  }

  [[nodiscard]] double gib_per_s() const { return bytes_per_ps * 1e12 / bytes_per_gib; }
  [[nodiscard]] double ns_per_access() const { return threads == 0 ? 0 : ps_per_access / threads / picoseconds_per_ns; }
};

// A side over all repetitions.
struct side_history {
  std::vector<double> gib_per_s;
  std::vector<double> ns_per_access;
  std::vector<std::uint64_t> samples;  // samples of the steady repetitions, or all
  unsigned threads = 0;
  std::uint64_t accesses = 0;

  // Returns the typical latency of the repetition.
  double add(side_sums& s) {
    gib_per_s.push_back(s.gib_per_s());
    ns_per_access.push_back(s.ns_per_access());
    threads = s.threads;
    accesses = s.accesses;
    std::sort(s.samples.begin(), s.samples.end());
    const double typical = s.samples.empty() ? s.ns_per_access() : typical_ns(s.samples);
    samples.insert(samples.end(), s.samples.begin(), s.samples.end());
    return typical;
  }

  [[nodiscard]] std::optional<side_figures> figures() {
    if (threads == 0) return std::nullopt;
    side_figures f;
    f.threads = threads;
    f.accesses = accesses;
    f.gib_per_s = bench::median(gib_per_s);
    f.ns_per_access = bench::median(ns_per_access);
    if (!samples.empty()) f.latency = figures_of(samples);
    return f;
  }
};

namespace {

std::optional<media_work> amplification(const bench_case& c, const std::optional<moved_bytes>& before,
                                        const std::optional<moved_bytes>& after, std::uint64_t loads,
                                        std::uint64_t stores) {
  if (!before || !after) return std::nullopt;
  const auto ratio = [&](std::uint64_t moved, std::uint64_t accesses) {
    const double asked = static_cast<double>(accesses) * static_cast<double>(c.access_bytes);
    return asked > 0 ? static_cast<double>(moved) / asked : 0;
  };
  return media_work{ratio(after->read - before->read, loads), ratio(after->written - before->written, stores)};
}

}  // namespace

// A memory, and its state while it is open.
struct engine::place {
  bench::medium_spec medium;
  int node = -1;
  std::unique_ptr<target> memory;
};

double case_result::value() const { return bench::median(values); }

engine::engine(run_options options, const std::vector<bench_case>& cases)
    : options_(std::move(options)), cases_(cases), cpu_(features_of_this_cpu()) {}

engine::~engine() = default;

std::vector<std::string> engine::remarks() const { return remarks_; }

double engine::emulation_scale() const { return emulations_.empty() ? 0 : emulations_.begin()->second->profile.scale; }

// Which medium the case is about; or why this run has none for it.
std::string engine::refusal(const bench_case& c, bench::medium_spec& medium) const {
  medium = options_.medium;
  if (c.medium.which == case_medium::kind::dram) {
    if (medium.simulated)
      medium.profile = bench::simulated_run::dram_profile;
    else
      medium = {};
  } else if (c.medium.which == case_medium::kind::profile) {
    if (medium.profile.empty())
      return fmt::format("real memory cannot be {}: use an emulated or simulated medium", c.medium.profile);
    medium.profile = c.medium.profile;
  }
  if (std::string lack = lack_for(c, cpu_); !lack.empty()) return lack;
  // Flushes are measured as such, also on a device whose platform makes them superfluous.
  medium.persistence = media::persistence_domain::adr;
  if (medium.simulated) {
    if (c.threads > bench::simulated_run::most_threads)
      return fmt::format("a simulated machine has at most {} threads", bench::simulated_run::most_threads);
    return {};
  }
  if (std::string lack = lack_of_nodes(c); !lack.empty()) return lack;
  if (c.memory_node > 0 && medium.in_pool()) return "a pool lies on the node of its device";
  const auto room = room_.try_emplace(medium.text(), room_on(medium)).first->second;
  if (c.working_set_bytes > room)
    return fmt::format("a working set of {} is more than this machine should give: {}",
                       bench::readable_bytes(c.working_set_bytes), bench::readable_bytes(room));
  const std::size_t cpus = bench::usable_cpus().size();
  // On the CPU an emulated device's delays are waited for, and a case about threads would be about the scheduler.
  if (c.threads > cpus) return fmt::format("{} threads need as many CPUs, and here are {}", c.threads, cpus);
  return {};
}

std::uint64_t engine::bytes_for(const bench_case& c) const {
  std::uint64_t bytes = c.working_set_bytes;
  for (const bench_case& other : cases_) {
    bench::medium_spec ignored;
    if (other.medium == c.medium && refusal(other, ignored).empty()) bytes = std::max(bytes, other.working_set_bytes);
  }
  // A place may begin past the border at which the last one ends.
  constexpr std::uint64_t page = 4096;
  return (bytes + page - 1) / page * page + page;
}

std::shared_ptr<const media::calibration> engine::emulation_of(const bench::medium_spec& medium) {
  if (!medium.emulated()) return nullptr;
  auto& known = emulations_[medium.profile];
  if (known == nullptr) {
    media::device_profile profile = media::load_profile(medium.profile);
    profile.persistence = medium.persistence.value_or(profile.persistence);
    known = std::make_shared<const media::calibration>(media::calibrate(profile, {.scale = options_.emulation_scale}));
    for (const std::string& note : known->notes) remarks_.push_back(fmt::format("{}: {}", medium.text(), note));
  }
  return known;
}

target& engine::memory_for(const bench_case& c, const bench::medium_spec& medium) {
  if (place_ != nullptr && place_->medium == medium && place_->node == c.memory_node) return *place_->memory;
  place_.reset();
  auto opened = std::make_unique<place>();
  opened->medium = medium;
  opened->node = c.memory_node;
  opened->memory = open_target({.medium = medium,
                                .bytes = bytes_for(c),
                                .numa_node = c.memory_node,
                                .huge_pages = options_.huge_pages,
                                .reuse = options_.reuse,
                                .overwrite = options_.overwrite,
                                .emulation = emulation_of(medium)});
  place_ = std::move(opened);
  return *place_->memory;
}

struct engine::sides {
  side_history reads;
  side_history writes;
};

case_result engine::measure(const bench_case& c) {
  case_result result;
  result.what = c;
  result.what.load = resolved(c.load, cpu_);
  bench::medium_spec medium;
  const std::string reason = refusal(result.what, medium);
  result.medium = medium.text();
  result.profile = medium.profile;
  if (!reason.empty()) {
    result.skipped = reason;
    return result;
  }
  if (!medium.simulated) {
    sides of;
    measure_on(result.what, memory_for(c, medium), std::nullopt, of, result);
    if (medium.emulated()) result.scale = emulations_.at(medium.profile)->profile.scale;
    return result;
  }
  // A separate machine for each case and layout: no case depends on the previous ones, nor on a filter that omits them.
  sides of;
  for (unsigned layout = 1; layout <= options_.layouts && !result.skipped; ++layout) {
    const bench::simulated_run machine(medium,
                                       {.threads = c.threads, .layout = layout - 1, .program_is_simulated = true});
    const std::unique_ptr<target> memory = open_target({.medium = medium, .bytes = c.working_set_bytes + 4096});
    measure_on(result.what, *memory, layout, of, result);
  }
  return result;
}

// One or more repetitions, until they agree; of a simulated memory, whose layout this is, one.
void engine::measure_on(const bench_case& c, target& memory, std::optional<unsigned> layout, sides& of,
                        case_result& result) const {
  const bool simulated = layout.has_value();
  const std::uint64_t seed = 1 + (layout.value_or(1) - 1) * seeds_of_layout;
  const std::size_t before_these = result.values.size();
  if (std::string reason = memory.refusal(c); !reason.empty()) {
    result.skipped = std::move(reason);
    return;
  }
  const method m = method_for(c, simulated);
  std::vector<std::unique_ptr<lane>> lanes;
  for (unsigned i = 0; i < c.threads; ++i) {
    const bool loads = c.operation == operation_kind::mixed ? i < c.readers : !c.stores();
    lanes.push_back(std::make_unique<lane>(c, m, memory, i, loads, seed));
  }
  const bool latency = c.measure == measure_kind::latency;
  result.unit = latency ? "ns" : "GiB/s";
  bench::thread_team team(c.threads);
  steadiness steady;
  for (std::uint64_t repetition = 0; repetition < m.max_repetitions && !steady.enough; ++repetition) {
    ++result.repetitions;
    team.run([&](unsigned t) {
      if (repetition == 0) run_on_node(c.thread_node, t);
      lanes[t]->prepare(repetition);
    });
    const std::optional<moved_bytes> before = memory.moved();
    std::atomic<unsigned> finished{0};
    std::uint64_t start = 0;
    if (simulated)
      for (const auto& l : lanes) start = std::max(start, l->ended() + start_after);
    team.run([&](unsigned t) { lanes[t]->measure(start, finished, c.threads); });
    side_sums loaded;
    side_sums stored;
    std::uint64_t issued_loads = 0;
    std::uint64_t issued_stores = 0;
    for (const auto& l : lanes) {
      lane_result& r = l->result();
      (l->loads() ? loaded : stored).add(c, r);
      (l->loads() ? issued_loads : issued_stores) += r.issued;
      result.timing_cost_ns = static_cast<double>(r.timing_cost) / picoseconds_per_ns;
    }
    if (c.operation == operation_kind::read_after_persist) issued_loads = issued_stores;  // each has both
    result.media = amplification(c, before, memory.moved(), issued_loads, issued_stores);
    double of_reads = 0;
    double of_writes = 0;
    if (loaded.threads > 0) of_reads = of.reads.add(loaded);
    if (stored.threads > 0) of_writes = of.writes.add(stored);
    const unsigned all = loaded.threads + stored.threads;
    result.values.push_back(latency ? (of_reads * loaded.threads + of_writes * stored.threads) / all
                                    : loaded.gib_per_s() + stored.gib_per_s());
    steady = judge(std::span(result.values).subspan(before_these), m.min_repetitions, options_.spread_percent);
  }
  result.steady = (before_these == 0 || result.steady) && steady.enough;
  result.spread_percent = std::max(result.spread_percent, steady.spread_percent);
  if (!steady.enough)
    result.notes.push_back(
        fmt::format("spread {:.0f} % after {} repetitions", steady.spread_percent, result.repetitions));
  result.reads = of.reads.figures();
  result.writes = of.writes.figures();
  result.huge_pages = memory.huge_pages();
  if (std::string doubt = memory.warning(); !doubt.empty()) result.notes.push_back(std::move(doubt));
}

namespace {

// The weight of the case as a step of the run's time. Threads of a simulated machine take turns, and its memory is made
// for each case: a byte of it takes as long as so many seconds of virtual time (measured: .13 s for 8 GB).
double weight_of(const bench_case& c, bool simulated) {
  constexpr double for_each_byte = 1.5e-11;
  const method m = method_for(c, simulated);
  const double seconds = (m.seconds + m.warm_up_seconds) * m.min_repetitions;
  return simulated ? seconds * c.threads + for_each_byte * static_cast<double>(c.working_set_bytes) : seconds;
}

}  // namespace

suite_report run_suite(const run_options& options, const suite& s, bench::progress& shown) {
  const auto start = std::chrono::steady_clock::now();
  suite_report report;
  engine measuring(options, s.cases);
  run_cases(
      report, s, options.medium.text(), shown,
      [&](const bench_case& c) { return weight_of(c, options.medium.simulated); },
      [&](const bench_case& c) { return measuring.measure(c); }, start);
  // Before the first figure it is about what was asked for: a path, more memory than there is.
  if (report.failure && std::ranges::all_of(report.results, [](const case_result& r) { return r.skipped.has_value(); }))
    throw error(*report.failure, "");
  report.remarks = measuring.remarks();
  report.emulation_scale = measuring.emulation_scale();
  return report;
}

}  // namespace pmlab::microbench
