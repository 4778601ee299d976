#include "bench/stores/pair_engine.hpp"
#include <pmlab/base/error.hpp>
#include "bench/stores/store_run.hpp"
#include "bench/stores/worker.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace pmlab::store_bench {
namespace {

constexpr unsigned pair_load_depth = 8;

// The kind of steps that load, unmeasured. Their weights are operations.
constexpr std::string_view loading = "loading";
constexpr double supposed_operations_per_s = 100'000;

class pair_run final : public store_run<pair_run_options, pair_contestant, pair_result> {
 public:
  using store_run::store_run;

 private:
  [[nodiscard]] double weight_of_records() const { return weight_of_work(options_.records, supposed_operations_per_s); }
  [[nodiscard]] std::pair<double, std::uint64_t> size_of(const pair_case& c) const override {
    if (loads(c)) return {weight_of_records(), options_.records};
    return {by_time() ? options_.seconds : static_cast<double>(options_.operations), options_.operations};
  }
  [[nodiscard]] static bool loads(const pair_case& c) noexcept { return c.what.kind == pair_phase_kind::load; }

  void prepare(pair_contestant& s, const pair_case& c) override {
    if (!loads(c) && s.state.loaded_for == c.value_bytes) return come_to_rest(s);
    check_at_end(s);  // its records go
    if (!announces()) s.make(options_.threads);
    if (loads(c)) return;
    step(s, loading, weight_of_records(), "loading", options_.records, [&] { load_missing(s, c.value_bytes); });
    s.state.loaded_for = c.value_bytes;
    come_to_rest(s);
  }
  // What cases before it left in the buffers of the drives is not work of this one.
  void come_to_rest(const pair_contestant& s) const {
    if (!announces()) s.drives().for_each([](store_device& d) { d.come_to_rest(); });
  }
  void restore(pair_contestant& s, const pair_case& c) override {
    if (loads(c)) s.state.loaded_for = c.loads_duplicates() ? 0 : c.value_bytes;
    if (c.what.kind == pair_phase_kind::erase && !announces()) load_missing(s, c.value_bytes);
  }
  // Puts the records that are not there.
  void load_missing(pair_contestant& s, std::size_t value_bytes) {
    const pair_case all{{pair_phase_kind::load, "loading"}, pair_order::random, value_bytes, pair_load_depth};
    static_cast<void>(run_threads(s, all, {}, next_seed(s, text_of(all))));
    settle_all(s);
  }

  [[nodiscard]] bool warms_up(const pair_case& c) const override {
    return c.what.kind == pair_phase_kind::mix && c.what.insert_share() < 1;
  }
  [[nodiscard]] case_length length_of(pair_contestant& /*s*/, const pair_case& c) const override {
    // Without duplicates a load ends with the last record.
    if (loads(c)) return {.operations = c.loads_duplicates() ? options_.records : 0};
    return usual_length(c.what.kind == pair_phase_kind::erase ? options_.records : 0);
  }

  void complete(pair_result& r, pair_contestant& s) override {
    if (!r.opening && r.what.what.changes()) r.after = settle(s);
  }
  // A store that looks idle in the middle of a long write is not: until nothing was written meanwhile.
  static void settle_all(pair_contestant& s) {
    for (bytes_written last = s.drives().written();;) {
      s.subject().settle();
      const bytes_written now = s.drives().written();
      if (now == last) return;
      last = now;
    }
  }
  [[nodiscard]] settling settle(pair_contestant& s) const {
    const bytes_written before = s.drives().written();
    const std::uint64_t began = clock_.now();
    settle_all(s);
    const bytes_written now = s.drives().written();
    return {static_cast<double>(clock_.now() - began) / 1000, now.main - before.main, now.staging - before.staging};
  }

  // Before its records go, too.
  void check_at_end(pair_contestant& s) override {
    const pair_case all{
        {pair_phase_kind::check, "check"}, pair_order::sequential, pair_ledger::least_value, pair_load_depth};
    check_with(s, weight_of_records(), options_.records, [&] { return run_threads(s, all, {}, 0); });
  }
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
