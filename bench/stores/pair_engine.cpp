#include "bench/stores/pair_engine.hpp"
#include <pmlab/base/error.hpp>
#include "bench/stores/pair_worker.hpp"
#include "bench/stores/run_frame.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace pmlab::store_bench {
namespace {

constexpr unsigned load_depth = 8;

// Kinds of steps that are not measured. Their weights are operations; beside cases that end by time they are seconds, at
// a speed that is supposed until the first of them is seen.
constexpr std::string_view loading = "loading";
constexpr std::string_view checking = "checking";
constexpr double supposed_operations_per_s = 100'000;

struct bytes_written {
  std::uint64_t main = 0;
  std::uint64_t staging = 0;
};

device_counts counts_of_main(const pair_contestant& s) {
  device_counts sum{};
  for (const auto& d : s.main()) {
    const device_counts one = d->counts();
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  }
  return sum;
}

bytes_written written_by(const pair_contestant& s) {
  return {store_bench::written_bytes(counts_of_main(s)),
          s.staging() == nullptr ? 0 : store_bench::written_bytes(s.staging()->counts())};
}

// The ratio over all drives together; nothing, unless each of them is modelled and was written to.
std::optional<double> flash_per_written(const pair_contestant& s) {
  double programmed = 0;
  double written = 0;
  bool known = true;
  s.for_each_device([&](const store_device& d) {
    const auto bytes = static_cast<double>(store_bench::written_bytes(d.counts()));
    const std::optional<double> amplification = d.amplification();
    if (bytes == 0) return;
    known = known && amplification.has_value();
    programmed += bytes * amplification.value_or(0);
    written += bytes;
  });
  return known && written > 0 ? std::optional(programmed / written) : std::nullopt;
}

class pair_run : run_frame<pair_result> {
 public:
  pair_run(const pair_run_options& options, std::vector<pair_contestant>& stores, const run_clock& clock,
           bench::progress& shown)
      : run_frame(clock, shown, options), options_(options), stores_(stores) {}

  pair_report all() {
    announce();
    return run_all(
        [&] {
          for (const pair_case& c : options_.cases)
            for (unsigned repetition = 1; repetition <= options_.repetitions; ++repetition)
              for (pair_contestant& s : stores_) measure(s, c, repetition);
          for (pair_contestant& s : stores_) check_at_end(s);
        },
        [&] {
          for (pair_contestant& s : stores_) {
            if (!s.is_made()) continue;
            s.for_each_device([&](const store_device& d) { remark_once(d.remarks()); });
            remark_once(s.subject().remarks());
          }
        });
  }

 private:
  // ---- steps and their weights, for the time that is left

  [[nodiscard]] double weight_of_records() const {
    return static_cast<double>(options_.records) / (by_time() ? supposed_operations_per_s : 1);
  }
  [[nodiscard]] double weight_of(const pair_case& c) const {
    if (c.what.kind == pair_phase_kind::load) return weight_of_records();
    return by_time() ? options_.seconds : static_cast<double>(options_.operations);
  }

  void announce() {
    shown_.pass(
        fmt::format("{} cases of {} stores, {} times", options_.cases.size(), stores_.size(), options_.repetitions));
    for (const pair_case& c : options_.cases) names_.push_back(text_of(c));
    for (const pair_contestant& s : stores_) {
      const std::string& store = s.labels().store;
      std::size_t loaded_for = 0;
      bool is_made = false;
      for (std::size_t i = 0; i < options_.cases.size(); ++i) {
        const pair_case& c = options_.cases[i];
        const bool loads = c.what.kind == pair_phase_kind::load;
        const bool makes = loads || loaded_for != c.value_bytes;
        if (makes && !loads) shown_.expect(store, loading, weight_of_records());
        loaded_for = c.loads_duplicates() ? 0 : c.value_bytes;
        for (unsigned r = 0; r < options_.repetitions; ++r) {
          if (is_made && (loads || (makes && r == 0))) shown_.expect(store, checking, weight_of_records());
          is_made = true;
          shown_.expect(store, names_[i], weight_of(c));
        }
      }
      shown_.expect(store, checking, weight_of_records());
    }
  }
  [[nodiscard]] std::size_t index_of(const pair_case& c) const {
    return static_cast<std::size_t>(&c - options_.cases.data());
  }

  // ---- states

  void load(pair_contestant& s, std::size_t value_bytes) {
    step(s.labels().store, loading, weight_of_records(), fmt::format("{}: loading", s.labels().store), options_.records,
         [&] { load_missing(s, value_bytes); });
  }
  // Puts the records that are not there.
  void load_missing(pair_contestant& s, std::size_t value_bytes) {
    const pair_case all{{pair_phase_kind::load, "loading"}, pair_order::random, value_bytes, load_depth};
    static_cast<void>(run_threads(s, all, 0, 0));
    settle_all(s);
    s.set_loaded_for(value_bytes);
  }

  // ---- measuring

  [[nodiscard]] worker_sums run_threads(pair_contestant& s, const pair_case& c, std::uint64_t operations,
                                        std::uint64_t time) {
    return share_case(c, operations, time,
                      [&](const pair_task& task) { return run_pair_worker(s, task, clock_, shown_); });
  }

  void measure(pair_contestant& s, const pair_case& c, unsigned repetition) {
    const bool loads = c.what.kind == pair_phase_kind::load;
    if (loads || s.loaded_for() != c.value_bytes) {
      if (s.is_made()) check_at_end(s);  // its records go
      s.make(options_.threads);
      if (!loads) load(s, c.value_bytes);
    }
    const std::string what =
        fmt::format("{}: {}, {} of {}", s.labels().store, text_of(c), repetition, options_.repetitions);
    step(s.labels().store, names_[index_of(c)], weight_of(c), what, loads ? options_.records : options_.operations,
         [&] {
           if (c.what.kind == pair_phase_kind::open)
             measure_opening(s, c, repetition);
           else
             measure_operations(s, c, repetition);
         });
    if (loads) s.set_loaded_for(c.loads_duplicates() ? 0 : c.value_bytes);
    if (c.what.kind == pair_phase_kind::erase) load_missing(s, c.value_bytes);
  }

  static void reset_counts(pair_contestant& s) {
    s.for_each_device([](store_device& d) { d.reset_counts(); });
    s.subject().reset_counts();
  }
  static void take_counts(pair_result& r, pair_contestant& s) {
    r.main = counts_of_main(s);
    if (s.staging() != nullptr) r.staging = s.staging()->counts();
    r.flash_per_written = store_bench::flash_per_written(s);
    r.medium = s.subject().counts();
    r.writes_to_drives = s.subject().writes_to_drives();
    r.space = s.subject().space();
  }
  // CPU time of waiting for modelled drives, and of what stands for a device. A device's own waiting is in both.
  [[nodiscard]] static std::uint64_t cpu_of_others(pair_contestant& s) {
    std::uint64_t waited = 0;
    s.for_each_device([&](const store_device& d) { waited += d.waiting_cpu_ns(); });
    return std::max(waited, s.subject().device_cpu_ns());
  }

  void measure_operations(pair_contestant& s, const pair_case& c, unsigned repetition) {
    const auto time = static_cast<std::uint64_t>(options_.seconds * picoseconds_per_second);
    std::uint64_t operations = options_.operations;
    if (const std::uint64_t most = most_operations(c, s.plan()); most != 0)
      operations = c.what.kind == pair_phase_kind::load || operations == 0 ? 0 : std::min(most, operations);
    if (c.what.kind == pair_phase_kind::mix && c.what.insert_share() < 1)
      static_cast<void>(operations == 0 ? run_threads(s, c, 0, time / warm_up_share)
                                        : run_threads(s, c, operations / warm_up_share + 1, 0));
    // Without duplicates a load ends with the last record.
    if (c.loads_duplicates()) operations = options_.records;
    const bool ends_by_time = operations == 0 && c.what.kind != pair_phase_kind::load;
    pair_result r = begin_result(s.labels(), c, false, repetition);
    const std::vector<store_statistic> before = s.subject().statistics();
    const std::optional<std::uint64_t> sent = s.subject().host_bytes();
    reset_counts(s);
    const std::uint64_t others = cpu_of_others(s);
    const std::uint64_t cpu = clock_.cpu_ns();
    const worker_sums sum = run_threads(s, c, operations, ends_by_time ? time : 0);
    const std::uint64_t cpu_used = clock_.cpu_ns() - cpu;
    r.cpu_ns = cpu_per_operation(cpu_used, cpu_of_others(s) - others + sum.own_ns, sum.operations);
    r.take_amounts(sum);
    r.take_times(sum);
    r.scan_latency = figures_of(sum.scan_latency);
    if (sent) r.host_bytes = s.subject().host_bytes().value_or(*sent) - *sent;
    take_counts(r, s);
    r.statistics = grown(before, s.subject().statistics());
    if (c.what.changes()) r.after = settle(s);
    report_.results.push_back(std::move(r));
  }

  // A store that looks idle in the middle of a long write is not: until nothing was written meanwhile.
  static void settle_all(pair_contestant& s) {
    for (bytes_written last = written_by(s);;) {
      s.subject().settle();
      const bytes_written now = written_by(s);
      if (now.main == last.main && now.staging == last.staging) return;
      last = now;
    }
  }
  [[nodiscard]] settling settle(pair_contestant& s) {
    const bytes_written before = written_by(s);
    const std::uint64_t began = clock_.now();
    settle_all(s);
    const bytes_written now = written_by(s);
    return {static_cast<double>(clock_.now() - began) / 1000, now.main - before.main, now.staging - before.staging};
  }

  void measure_opening(pair_contestant& s, const pair_case& c, unsigned repetition) {
    if (!s.subject().can_reopen()) {
      remark_once(fmt::format("{} is not measured in phase open: there is nothing to open", s.labels().store));
      return;
    }
    s.subject().close();
    pair_result r = begin_result(s.labels(), c, true, repetition);
    reset_counts(s);
    const std::uint64_t began = clock_.now();
    s.subject().open();
    const worker_sums read = run_pair_worker(s, {.what = c, .operations = 1, .seed = next_seed()}, clock_, shown_);
    const double answered = static_cast<double>(read.ended - began) / 1000;
    // A store leaves nothing of its opening for later.
    r.opening = opening_times{answered, answered};
    r.take_amounts(read);
    r.time_ns = r.opening->first_read_ns;
    take_counts(r, s);
    tell_wrong(read);
    report_.results.push_back(std::move(r));
  }

  // Before its records go, too.
  void check_at_end(pair_contestant& s) {
    const pair_case all{{pair_phase_kind::mix, "check"}, pair_order::sequential, pair_ledger::least_value, load_depth};
    step(s.labels().store, checking, weight_of_records(),
         fmt::format("{}: reading all of it once more", s.labels().store), options_.records, [&] {
           const worker_sums sum = on_all_threads([&](unsigned thread) {
             return check_pairs(s, {.what = all, .thread = thread, .threads = options_.threads}, clock_, shown_);
           });
           const auto of_it = std::ranges::find(report_.at_end, s.labels().store, &final_check::store);
           final_check& all_of_it =
               of_it != report_.at_end.end() ? *of_it : report_.at_end.emplace_back(s.labels().store, 0, 0);
           all_of_it.verified += sum.verified;
           all_of_it.wrong += sum.wrong;
         });
  }

  const pair_run_options& options_;
  std::vector<pair_contestant>& stores_;
  std::vector<std::string> names_;
};

// The inserts of one case, with the operations before it that are not measured.
std::uint64_t inserts_of(const pair_run_options& o, const pair_case& c, std::size_t cases_that_insert) {
  const double share = c.what.insert_share();
  if (share == 0) return 0;
  // Cases that end by time divide as many keys as are loaded.
  if (o.operations == 0) return o.records / cases_that_insert + 1;
  const std::uint64_t all = o.operations + (share < 1 ? o.operations / warm_up_share + 1 : 0);
  // Chance, and what threads have too much.
  return share == 1 ? all + o.threads
                    : static_cast<std::uint64_t>(std::ceil(static_cast<double>(all) * share * 1.2)) + 64UL * o.threads;
}

}  // namespace

std::optional<double> pair_result::host_amplification() const {
  if (user_bytes == 0 || (!host_bytes && !writes_to_drives)) return std::nullopt;
  const std::uint64_t written =
      host_bytes.value_or(store_bench::written_bytes(main) + (staging ? store_bench::written_bytes(*staging) : 0));
  return static_cast<double>(written) / static_cast<double>(user_bytes);
}

std::optional<double> pair_result::device_amplification() const {
  if (!writes_to_drives) return std::nullopt;
  if (!host_bytes) return flash_per_written;
  if (*host_bytes == 0) return std::nullopt;
  return static_cast<double>(store_bench::written_bytes(main)) * flash_per_written.value_or(1) /
         static_cast<double>(*host_bytes);
}

std::optional<double> pair_result::hit_ratio() const {
  std::uint64_t hits = 0;
  std::uint64_t all = 0;
  for (const auto& [name, value] : statistics) {
    if (name == "cache_hits") hits = value;
    if (name == "cache_hits" || name == "cache_misses") all += value;
  }
  return all == 0 ? std::nullopt : std::optional(static_cast<double>(hits) / static_cast<double>(all));
}

key_plan plan_of(const pair_run_options& options) {
  const auto cases = std::ranges::count_if(options.cases, [](const pair_case& c) { return c.what.insert_share() > 0; });
  std::uint64_t inserts = 0;
  // A run of cases without a load in between goes on with the same store.
  for (const pair_case& c : options.cases)
    inserts += inserts_of(options, c, static_cast<std::size_t>(cases) * options.repetitions) * options.repetitions;
  return {options.records, inserts};
}

std::uint64_t ranks_of(const pair_run_options& options) {
  std::uint64_t ranks = plan_of(options).ranks();
  for (const pair_case& c : options.cases) ranks = std::max(ranks, ranks_of_load(c, options.records));
  return ranks;
}

void prepare_pair_stores(const pair_run_options& options, std::vector<pair_contestant>& stores) {
  for (pair_contestant& s : stores) {
    s.make(options.threads);
    const pair_promises p = s.subject().promises();
    if (options.key_bytes < p.least_key || options.key_bytes > p.most_key)
      throw error(fmt::format("--key-bytes {}: {} has keys of {} to {} bytes", options.key_bytes, s.labels().store,
                              p.least_key, p.most_key),
                  "give a number in this range");
    for (const pair_case& c : options.cases)
      if (c.what.scans() && !p.is_ordered)
        throw error(fmt::format("{} has no order of keys, and phase {} scans", s.labels().store, c.what.name),
                    "leave the phase or the store out");
  }
}

pair_report run_pair_cases(const pair_run_options& options, std::vector<pair_contestant>& stores,
                           const run_clock& clock, bench::progress& shown) {
  return pair_run(options, stores, clock, shown).all();
}

}  // namespace pmlab::store_bench
