// Runs a benchmark.
#include "bench/engine/engine.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/media/clock.hpp>
#include "bench/catalogue/operation_loop.hpp"
#include "bench/devices/profile_file.hpp"
#include "bench/engine/contender.hpp"
#include "bench/engine/driver_cost.hpp"
#include "bench/engine/phase_runner.hpp"
#include "bench/engine/process_of_its_own.hpp"
#include "bench/engine/report_bytes.hpp"
#include "bench/engine/simulated_run.hpp"
#include "bench/support/cpu_counters.hpp"
#include "bench/support/machine.hpp"
#include "bench/support/pm_counters.hpp"
#include "bench/support/process_pages.hpp"
#include "bench/support/quantity.hpp"
#include "bench/support/thread_team.hpp"
#include "bench/workload/keys.hpp"
#include "bench/workload/latency_histogram.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace pmlab::bench {
namespace {

using workload::operation_kind;

constexpr std::uint64_t picoseconds = 1000;  // in a nanosecond

constexpr std::uint64_t fixed_pool_bytes = std::uint64_t{64} << 20;

// Why this index cannot run this phase on this medium; empty: it can.
std::string refusal(const index_description& index, const phase& p, unsigned threads, const bench_options& options) {
  const medium_spec& medium = options.medium;
  for (std::size_t k = 0; k < workload::operation_kinds; ++k) {
    const auto kind = static_cast<operation_kind>(k);
    if (!p.has(kind)) continue;
    if (std::string reason = index.refusal(kind, threads); !reason.empty()) return reason;
  }
  if (p.kind != phase_kind::reopen) return {};
  if (options.hosts.front() > 1) return "the other hosts have it open";
  if (index.place == placement::own_dram) return "DRAM keeps nothing across a restart";
  const bool lasts = medium.in_pool() || medium.simulated;
  return lasts ? std::string() : "medium " + medium.text() + " keeps nothing across a restart";
}

// A run in which nothing can be measured is an error, not a result.
void refuse_to_measure_nothing(const bench_options& options, const std::vector<const index_description*>& indexes) {
  std::string reasons;
  for (const index_description* d : indexes)
    for (const phase& p : options.phases) {
      if (p.kind == phase_kind::load) continue;
      for (const unsigned threads : options.threads) {
        const std::string reason = refusal(*d, p, threads, options);
        if (reason.empty()) return;
        const std::string told = fmt::format("{} of {}: {}", p.name, d->name, reason);
        if (reasons.find(told) == std::string::npos) reasons += (reasons.empty() ? "" : "; ") + told;
      }
    }
  if (!reasons.empty())
    throw error("none of the requested phases can be measured: " + reasons,
                "give other --phases, or an index that has them");
}

// Every entry has a key and a value, and half of a new pool's size is really used.
std::uint64_t least_bytes(const index_description& d, std::uint64_t records) {
  constexpr std::uint64_t entry_bytes = 16;
  constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
  if (d.kept == keeps::nothing) return 0;
  const std::uint64_t each = std::max(entry_bytes, d.pool_bytes_per_entry / 2);
  return records > most / each ? most : records * each;
}

// Without this the kernel ends the run, or everything else.
void refuse_more_than_the_memory(const bench_options& options, const std::vector<const index_description*>& indexes) {
  const std::uint64_t records = options.trace ? options.trace->load.size() : options.records;
  const std::uint64_t available = available_memory();
  std::uint64_t needed = 0;
  for (const index_description* d : indexes) {
    // The code that makes a pool checks the space in its folder.
    if (options.medium.in_pool() && d->place != placement::own_dram) continue;
    const std::uint64_t bytes = least_bytes(*d, records);
    needed = bytes > std::numeric_limits<std::uint64_t>::max() - needed ? bytes : needed + bytes;
  }
  if (needed <= available) return;
  throw error(fmt::format("{} records take {} of DRAM at least, and this machine has {} available", records,
                          readable_bytes(needed), readable_bytes(available)),
              "give fewer --records or fewer indexes");
}

unsigned own_threads(const std::vector<const index_description*>& indexes) {
  unsigned sum = 0;
  for (const index_description* d : indexes) sum += d->own_threads;
  return sum;
}

// The first record's place among all keys: other layouts have other keys.
std::uint64_t first_key_of(const bench_options& options) {
  constexpr unsigned records_bits = 40;
  return options.medium.simulated ? (options.layout - 1) << records_bits : 0;
}

// The name of a file in /proc/PID/maps.
std::string path_in_maps(const std::string& path) {
  std::error_code unknown;
  return std::filesystem::weakly_canonical(path, unknown).string();
}

// One number of hosts and of threads, the first of the options, from opening the indexes to closing them.
class pass {
 public:
  // `threads`: of all hosts. Repeats `first_repeat` to the last of the options; `first`: of the run's passes.
  pass(const bench_options& options, const std::vector<const index_description*>& indexes, unsigned threads,
       progress& shown, bench_report& report, bool first, unsigned first_repeat = 1)
      : options_(options),
        shown_(shown),
        report_(report),
        first_repeat_(first_repeat),
        machine_(options.medium, {.threads = threads / options.hosts.front(),
                                  .background = own_threads(indexes),
                                  .layout = options.layout - 1,
                                  .cpu_cache_bytes = options.cpu_cache_bytes,
                                  .hosts = options.hosts.front(),
                                  .coherence = options.coherence.value_or(simulator::coherence::full)}),
        team_(threads),
        runner_(options, team_, shown) {
    // A simulated machine is left as it is: what lies in its heap decides figures.
    if (!options.medium.simulated) driver_ = std::make_unique<driver_cost>(options, team_);
    for (const index_description* d : indexes) open(*d, indexes.size() == 1, first);
  }

  void run() {
    load();
    for (unsigned repeat = first_repeat_; repeat <= options_.repeats; ++repeat) {
      shown_.pass(fmt::format("{}, {}: {}", threads_text(), repeat_text(repeat), phases_text()));
      for (std::size_t position = 0; position < options_.phases.size(); ++position) {
        const phase& p = options_.phases[position];
        if (p.kind == phase_kind::load) continue;
        for (std::size_t turn = 0; turn < contenders_.size(); ++turn)
          run_phase(*contenders_[(turn + repeat - 1) % contenders_.size()], p, position, repeat);
      }
    }
  }

  // The indexes' part of the report: the wrong answers as text, and the accuracy of the emulation.
  ~pass() {
    for (const auto& c : contenders_) {
      if (c->expected)
        for (const std::string& w : c->expected->first_wrong())
          report_.first_wrong.push_back(c->description->name + ", " + w);
      remark_on_emulation(*c);
    }
  }
  pass(const pass&) = delete;
  pass& operator=(const pass&) = delete;

 private:
  [[nodiscard]] unsigned threads_of_host() const { return team_.size() / options_.hosts.front(); }
  [[nodiscard]] std::string threads_text() const {
    const unsigned hosts = options_.hosts.front();
    if (hosts > 1) return fmt::format("{} hosts with {} threads", hosts, threads_of_host());
    return team_.size() == 1 ? "1 thread" : fmt::format("{} threads", team_.size());
  }
  [[nodiscard]] std::string repeat_text(unsigned repeat) const {
    if (options_.medium.simulated) return fmt::format("layout {}", options_.layout);
    return fmt::format("repeat {} of {}", repeat, options_.repeats);
  }
  [[nodiscard]] std::string phases_text() const {
    std::string text;
    for (const phase& p : options_.phases)
      if (p.kind != phase_kind::load) text += (text.empty() ? "" : ", ") + p.name;
    return text;
  }

  void remark_on_emulation(const contender& c) {
    const std::optional<media::emulation_counts> sums = c.index->emulation();
    if (!sums || sums->late_ns == 0) return;
    constexpr double worth_saying = 0.02;
    const double late = static_cast<double>(sums->late_ns) / static_cast<double>(sums->late_ns + sums->waited_ns);
    if (late < worth_saying) return;
    report_.remarks.push_back(
        fmt::format("{} with {}: this machine was slower than the device in {:.0f} % of the emulated time; those "
                    "accesses took too long",
                    c.description->name, threads_text(), 100 * late));
  }

  void open(const index_description& description, bool alone, bool first) {
    auto c = std::make_unique<contender>();
    c->description = &description;
    c->keys.first = first_key_of(options_);
    subject_setup setup;
    setup.medium = options_.medium;
    setup.emulation = options_.emulation;
    setup.huge_pages = options_.huge_pages;
    setup.threads = team_.size();
    setup.records = options_.trace ? options_.trace->load.size() : options_.records;
    if (options_.medium.simulated) {
      setup.medium.profile = profile_of_subjects;
      setup.pool_bytes = pool_bytes_for(description, options_);
    }
    if (options_.medium.in_pool() && description.place != placement::own_dram) {
      // The file of an earlier number of threads is ours to replace.
      const existing_file policy =
          !first && options_.on_existing == existing_file::refuse ? existing_file::overwrite : options_.on_existing;
      c->pool.emplace(pool_path(options_.medium.path, description.name, alone), pool_bytes_for(description, options_),
                      policy, options_.keep);
      setup.medium.path = c->pool->path();
      setup.pool_bytes = c->pool->bytes_to_make();
    }
    shown_.pass(fmt::format("{}: opening {} on {}", threads_text(), description.name, setup.medium.text()));
    c->index = description.make(setup);
    find_module_counts(*c);
    if (options_.verify) c->expected = std::make_unique<model>(team_.size());
    c->space = c->index->space();
    if (c->space.entries > 0) take_over(*c);
    contenders_.push_back(std::move(c));
  }

  // Whether the modules behind its pool are asked what they did. Why they are not is one remark.
  void find_module_counts(contender& c) {
    if (!c.pool || options_.medium.emulated() || options_.medium.simulated || !is_in_persistent_memory(c.pool->path()))
      return;
    const pm_reading found = read_pm_counters();
    c.has_module_counts = found.counts.has_value();
    if (!found.counts && std::ranges::find(report_.remarks, found.problem) == report_.remarks.end())
      report_.remarks.push_back(found.problem);
  }

  void load() {
    const phase p = make_phase(phase_kind::load);
    settle_pages();
    for (const auto& c : contenders_) {
      if (c->space.entries > 0) {
        shown_.skip(c->description->name, p.name, phase_runner::weight_of(options_, p));
        continue;
      }
      shown_.pass(
          fmt::format("{}: loading {} with {} records", threads_text(), c->description->name,
                      options_.trace ? short_count(options_.trace->load.size()) : short_count(options_.records)));
      add(*c, p, runner_.measure(*c, p, 0, first_repeat_), 0);
    }
  }

  // A pool of an earlier run: its entries replace those that this run would have loaded.
  void take_over(contender& c) {
    const std::uint64_t wanted = options_.trace ? options_.trace->load.size() : options_.records;
    if (c.space.entries != wanted)
      throw error(
          fmt::format("pool {} holds {} entries, not the {} of this run", c.pool->path(), c.space.entries, wanted),
          fmt::format("give --records {} if an earlier run loaded so many, or --overwrite", c.space.entries));
    c.keys.records = wanted;
    std::vector<workload::operation> reads(wanted);
    std::vector<answer> answers(wanted);
    for (std::uint64_t i = 0; i < wanted; ++i)
      reads[i].key = options_.trace ? options_.trace->load[i].key : workload::key_of(i);
    c.index->run({.operations = reads, .answers = answers});
    for (std::uint64_t i = 0; i < wanted; ++i) {
      const bool known = answers[i].found && (!c.expected || c.expected->adopt(reads[i].key, answers[i].value));
      if (!known)
        throw error(fmt::format("pool {} lacks record {} of this run", c.pool->path(), i),
                    "it was loaded by something else: use --overwrite, or another path");
    }
    report_.skipped.push_back({c.description->name, threads_of_host(), "load",
                               fmt::format("the pool held the {} entries already", c.space.entries)});
  }

  // Heaps and pools of peers know no 2 MB pages, and what they have taken since the last phase is on 4 KB pages.
  void settle_pages() const {
    if (options_.huge_pages && !options_.medium.simulated) move_to_huge_pages();
  }

  void add(const contender& c, const phase& p, phase_result measured, std::uint64_t position) {
    measured.cpu_cache_bytes = machine_.cpu_cache_bytes();
    if (driver_ != nullptr) measured.driver_ns = driver_->of(p, position);
    if (!options_.medium.simulated)
      measured.huge_page_share = pages_of_process(c.pool ? path_in_maps(c.pool->path()) : "").on_huge_pages();
    remark_on_rate(measured);
    report_.results.push_back(std::move(measured));
  }

  void remark_on_rate(const phase_result& measured) {
    constexpr double reached = 0.98;
    const bool is_paced = options_.rate > 0 && measured.phase != "load" && measured.phase != "reopen";
    if (!is_paced || measured.throughput >= reached * static_cast<double>(options_.rate)) return;
    report_.remarks.push_back(fmt::format(
        "{} with {}: phase {} reached {} of the {} operations per second of --rate; its latencies grow with the "
        "length of the phase",
        measured.index, threads_text(), measured.phase, short_count(static_cast<std::uint64_t>(measured.throughput)),
        short_count(options_.rate)));
  }

  void run_phase(contender& c, const phase& p, std::size_t position, unsigned repeat) {
    std::string reason = refusal(*c.description, p, team_.size(), options_);
    if (reason.empty() && p.kind == phase_kind::reopen && !c.index->durable())
      reason = "medium " + c.medium(options_.medium) + " keeps nothing across a restart";
    if (!reason.empty()) {
      shown_.skip(c.description->name, p.name, phase_runner::weight_of(options_, p));
      if (repeat == first_repeat_) report_.skipped.push_back({c.description->name, threads_of_host(), p.name, reason});
      return;
    }
    // An erase phase removes the entries of insert phases; without any, it is prepared here.
    if (p.kind == phase_kind::erase && c.keys.added.empty())
      static_cast<void>(runner_.measure(c, make_phase(phase_kind::insert), position + options_.phases.size(), repeat));
    settle_pages();
    add(c, p, runner_.measure(c, p, position, repeat), position);
  }

  const bench_options& options_;
  progress& shown_;
  bench_report& report_;
  unsigned first_repeat_;
  simulated_run machine_;
  thread_team team_;
  phase_runner runner_;
  std::unique_ptr<driver_cost> driver_;  // null: time is virtual
  std::vector<std::unique_ptr<contender>> contenders_;
};

// A pass on a simulated machine, of one index in one repeat, in a process of its own: what was measured before, under
// which names, leaves nothing behind that its figures depend on. Each repeat has a layout of its own. Throws
// pmlab::error.
bench_report simulated_pass(const bench_options& options, const index_description& index, unsigned threads,
                            unsigned repeat, progress& shown) {
  bench_options one = options;
  one.layout += repeat - 1;
  one.repeats = static_cast<unsigned>(one.layout);
  const auto measure = [&] {
    const progress::moving moving(shown);
    bench_report report;
    {
      pass measured(one, {&index}, threads, shown, report, true, one.repeats);
      try {
        measured.run();
      } catch (const error& e) {
        report.failure = e.what();
      }
    }
    return bytes_of(report);
  };
  bench_report report =
      report_of(in_process_of_its_own(fmt::format("the simulated machine of {}", index.name),
                                      "give fewer --records or fewer --threads, if memory was short", measure));
  // Its number in the run; the layout's decided what it did.
  for (phase_result& r : report.results) r.repeat = repeat;
  return report;
}

// All passes of one number of threads on simulated machines, one after the other, or until one ends early: the report
// then has the reason. Throws pmlab::error: an index cannot be opened.
void run_simulated(const bench_options& options, const std::vector<const index_description*>& indexes, unsigned threads,
                   progress& shown, bench_report& report) {
  for (unsigned repeat = 1; repeat <= options.repeats; ++repeat)
    for (const index_description* d : indexes) {
      bench_report one = simulated_pass(options, *d, threads, repeat, shown);
      // Shown in the process that measured.
      for (const phase& p : options.phases)
        if (refusal(*d, p, threads, options).empty()) shown.skip(d->name, p.name, phase_runner::weight_of(options, p));
      std::move(one.results.begin(), one.results.end(), std::back_inserter(report.results));
      std::move(one.first_wrong.begin(), one.first_wrong.end(), std::back_inserter(report.first_wrong));
      if (repeat == 1) std::move(one.skipped.begin(), one.skipped.end(), std::back_inserter(report.skipped));
      report.failure = one.failure;
      if (report.failure) return;
    }
}

clock_limits limits_of_clock() {
  constexpr int pairs = 10'000;
  workload::latency_histogram empty;
  const media::fast_clock& clock = media::fast_clock::instance();
  for (int i = 0; i < pairs; ++i) {
    const std::uint64_t start = clock.now_after_loads();
    empty.record((clock.now_after_loads() - start) / picoseconds);
  }
  return {static_cast<double>(empty.percentile(50)), static_cast<double>(empty.percentile(99))};
}

// Each number of hosts with each number of threads.
std::vector<std::pair<unsigned, unsigned>> places_of(const bench_options& options) {
  std::vector<std::pair<unsigned, unsigned>> places;
  for (const unsigned hosts : options.hosts)
    for (const unsigned threads : options.threads) places.emplace_back(hosts, threads);
  return places;
}

// For the time that is left.
void announce(const bench_options& options, const std::vector<const index_description*>& indexes, progress& shown) {
  const auto runs = static_cast<unsigned>(std::max<std::size_t>(options.persistence.size(), 1));
  bench_options one = options;
  for (const auto& [hosts, threads] : places_of(options))
    for (const index_description* d : indexes)
      for (const phase& p : options.phases) {
        one.hosts = {hosts};
        if (!refusal(*d, p, threads, one).empty()) continue;
        const bool once = p.kind == phase_kind::load && !options.medium.simulated;
        const double weight = phase_runner::weight_of(options, p);
        for (unsigned repeat = 0; repeat < runs * (once ? 1 : options.repeats); ++repeat)
          shown.expect(d->name, p.name, weight, p.kind != phase_kind::load && options.seconds > 0);
      }
}

void remark_on(const bench_options& options, bench_report& report) {
  if (options.emulation)
    for (const std::string& note : options.emulation->notes) report.remarks.push_back(note);
  const bool without_flushes = std::any_of(options.persistence.begin(), options.persistence.end(), media::keeps_caches);
  if (without_flushes && options.medium.in_pool())
    report.remarks.emplace_back(
        "--persistence left flushes out: where the platform loses its caches, a power failure before these pools were "
        "closed would have damaged them, and so would one after a kill");
  if (options.cpu_counters)
    if (std::string reason = cpu_counters::refusal(); !reason.empty()) report.remarks.push_back(std::move(reason));
  if (*std::ranges::max_element(options.hosts) > 1)
    report.remarks.emplace_back(
        "of several hosts time alone is simulated: each load sees the newest store, so that a refresh that is missing "
        "gives no wrong answer here; pmlab verify --hosts finds it");
  // Simulated threads have a core each.
  if (options.medium.simulated) return;
  const std::size_t cpus = usable_cpus().size();
  for (const unsigned t : options.threads) {
    if (t <= cpus) continue;
    report.remarks.push_back(
        options.medium.emulated()
            ? fmt::format("{} threads share {} CPUs: the delays of an emulated medium are waited for on the CPU, so "
                          "these figures are NOT those of the device",
                          t, cpus)
            : fmt::format("{} threads share {} CPUs: their figures show waiting for a CPU, not scaling", t, cpus));
  }
}

std::vector<std::string> names_of_host_indexes() {
  std::vector<std::string> names;
  for (const index_description* d : host_indexes()) names.push_back(d->name);
  return names;
}

// Whether the options about time fit the clock, and each other.
void check_clock(const bench_options& o) {
  const bool real = !o.medium.simulated;
  if (!real && o.rate > 0)
    throw error("--rate needs a real clock, and " + o.medium.text() + " has a virtual one",
                "leave it out, or use another medium");
  if (!real && o.cpu_counters)
    throw error("--cpu-counters counts what this CPU does, and " + o.medium.text() + " simulates another one",
                "leave it out, or use another medium");
  if (o.rate > 0 && o.batch > 1)
    throw error("--rate and --batch exclude each other: operations that wait for a batch begin late", "leave one out");
  if (o.rate > 0 && o.verify)
    throw error("--rate and --verify exclude each other: operations that wait for a check begin late", "leave one out");
}

// Whether the options about several hosts fit the medium and the indexes.
void check_hosts(const bench_options& options, const std::vector<const index_description*>& indexes) {
  const unsigned most = *std::ranges::max_element(options.hosts);
  for (const index_description* d : indexes) {
    if (is_shared_by_hosts(*d) && !options.medium.simulated) throw has_one_host(d->name, options.medium);
    if (most > 1 && !is_shared_by_hosts(*d))
      throw error(fmt::format("{} is not for several hosts", d->name),
                  fmt::format("use {}, or leave --hosts out", fmt::join(names_of_host_indexes(), " or ")));
  }
  if (most == 1) {
    if (options.coherence) throw error("--coherence is about several hosts", "give --hosts 2 or more, too");
    return;
  }
  media::device_profile profile;
  if (options.medium.simulated) profile = media::load_profile(options.medium.profile);
  const std::uint64_t room = profile.hosts;
  if (room < 2)
    throw error(fmt::format("--hosts {}, and medium {} has one", most, options.medium.text()),
                "use --medium simulated:cxl-pod, or a profile with hosts = 2 or more");
  if (most > room)
    throw error(fmt::format("{} hosts are more than device profile {} has", most, options.medium.profile),
                fmt::format("give at most {}", room));
  std::vector<media::persistence_domain> domains = options.persistence;
  if (domains.empty()) domains.push_back(profile.persistence);
  for (const media::persistence_domain d : domains)
    if (media::keeps_caches(d))
      throw error(fmt::format("persistence {} leaves flushes out, and several hosts need them", to_string(d)),
                  "use adr");
}

}  // namespace

void check(const bench_options& options, const std::vector<const index_description*>& indexes) {
  if (options.batch < 1 || options.batch > batch_limit)
    throw error(fmt::format("--batch {} is out of range", options.batch), fmt::format("give 1 to {}", batch_limit));
  std::set<std::string> seen;
  for (const index_description* d : indexes) {
    if (!seen.insert(d->name).second)
      throw error(fmt::format("index {} is named twice", d->name), "name each index once");
    if (options.verify && d->kept == keeps::nothing)
      throw error(fmt::format("{} keeps nothing, so there is nothing to verify", d->name),
                  "leave it out, or run without --verify");
    if (d->place == placement::own_pool &&
        (!options.medium.in_pool() || options.medium.emulated() || options.medium.counted))
      throw error(
          fmt::format("{} cannot run on medium {}", d->name, options.medium.text()),
          "it lives in a pool of its own library: use --medium pmem:PATH, for example pmem:/dev/shm/pmlab.pool");
  }
  check_hosts(options, indexes);
  if (options.medium.simulated)
    for (const auto& [hosts, threads] : places_of(options))
      if (hosts * threads > simulated_run::most_threads)
        throw error(
            hosts == 1 ? fmt::format("{} threads are more than a simulated machine has cores for", threads)
                       : fmt::format("{} hosts with {} threads each are more than there are cores for", hosts, threads),
            fmt::format("give at most {}{}", simulated_run::most_threads, hosts == 1 ? "" : " in all"));
  if (!options.medium.simulated)
    for (const auto& [option, is_given] :
         {std::pair("--cpu-cache", options.cpu_cache_bytes != 0), std::pair("--layout", options.layout != 1)})
      if (is_given)
        throw error(fmt::format("{} is of simulated media, and this is {}", option, options.medium.text()),
                    "leave it out, or use a simulated medium");
  check_clock(options);
  if (!options.persistence.empty() && options.medium.plain_dram())
    throw error("--persistence has no effect on medium dram, which nothing outlives",
                "leave it out, or use another --medium");
  if (!options.baseline.empty() && !seen.contains(options.baseline))
    throw error(fmt::format("baseline {} is not among the indexes of this run", options.baseline),
                "name it with --index too");
  refuse_to_measure_nothing(options, indexes);
  refuse_more_than_the_memory(options, indexes);
}

std::uint64_t pool_bytes_for(const index_description& index, const bench_options& options) {
  if (options.pool_bytes != 0) return options.pool_bytes;
  const std::uint64_t loaded = options.trace ? options.trace->load.size() + options.trace->run.size() : options.records;
  // By time, the number of operations is unknown: as many as a fast index makes.
  constexpr double operations_per_second = 2e6;
  const bool by_time = options.seconds > 0;
  const std::uint64_t per_mix =
      by_time ? static_cast<std::uint64_t>(options.seconds * operations_per_second) : options.operations;
  const std::uint64_t per_phase = by_time ? options.records : options.operations;
  std::uint64_t inserted = 0;
  bool erases = false;
  for (const phase& p : options.phases) {
    erases |= p.kind == phase_kind::erase && index.refusal(operation_kind::erase, 1).empty();
    if (p.kind == phase_kind::insert) inserted += per_phase;
    if (p.kind == phase_kind::erase && inserted == 0) inserted += per_phase;
    if (p.kind == phase_kind::mix)
      inserted += static_cast<std::uint64_t>(p.shares.share[static_cast<std::size_t>(operation_kind::insert)] *
                                             static_cast<double>(per_mix) * 1.1);
  }
  // Simulated blocks lie a line apart, and room that is not used costs nothing. Each repeat has a memory of its own.
  const std::uint64_t roomy = options.medium.simulated ? 4 : 1;
  const std::uint64_t repeats = options.medium.simulated ? 1 : options.repeats;
  return roomy * (fixed_pool_bytes + index.pool_bytes_per_entry * (loaded + inserted * (erases ? 2 : repeats)));
}

bench_report run_bench(const bench_options& options, const std::vector<const index_description*>& indexes,
                       progress& shown) {
  check(options, indexes);
  // The first use calibrates it, for 20 ms: not inside a measurement.
  static_cast<void>(media::fast_clock::instance());
  if (!options.medium.simulated && !options.huge_pages) stay_on_small_pages();
  bench_report report;
  if (!options.medium.simulated) report.clock = limits_of_clock();
  remark_on(options, report);
  announce(options, indexes, shown);
  // The progress of a simulated pass moves in the process of that pass.
  std::optional<progress::moving> moving;
  if (!options.medium.simulated) moving.emplace(shown);
  std::vector<std::optional<media::persistence_domain>> domains(options.persistence.begin(), options.persistence.end());
  if (domains.empty()) domains.push_back(options.medium.persistence);
  bool first = true;
  for (const auto& domain : domains) {
    bench_options one_domain = options;
    one_domain.medium.persistence = domain;
    const std::size_t skipped_before = report.skipped.size();
    for (const auto& [hosts, threads] : places_of(options)) {
      bool working = !first;
      one_domain.hosts = {hosts};
      try {
        if (options.medium.simulated) {
          run_simulated(one_domain, indexes, hosts * threads, shown, report);
          if (report.failure) return report;
          first = false;
          continue;
        }
        pass one(one_domain, indexes, threads, shown, report, first);
        first = false;
        working = true;
        one.run();
      } catch (const error& e) {
        if (!working) throw;
        report.failure = e.what();
        return report;
      }
    }
    // The same phases are left out under each.
    if (domain != domains.front()) report.skipped.resize(skipped_before);
  }
  return report;
}

}  // namespace pmlab::bench
