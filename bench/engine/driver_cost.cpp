#include "bench/engine/driver_cost.hpp"
#include "bench/catalogue/registry.hpp"
#include "bench/engine/summary.hpp"

#include <algorithm>
#include <vector>

namespace pmlab::bench {
namespace {

// Null: this program has it not.
const index_description* index_that_keeps_nothing() {
  const std::vector<const index_description*> all = all_indexes();
  const auto found = std::ranges::find(all, "null_index", &index_description::name);
  return found == all.end() ? nullptr : *found;
}

// Those of the run, without what is not measured here.
bench_options options_of_driver(bench_options o) {
  constexpr std::uint64_t enough = 100'000;
  o.medium = {};
  o.emulation = {};
  o.persistence = {};
  o.trace = {};
  o.verify = false;
  o.seconds = 0;
  o.operations = std::min(o.operations, enough);
  o.interval_seconds = 0;
  o.histograms = false;
  o.cpu_counters = false;
  return o;
}

}  // namespace

driver_cost::driver_cost(const bench_options& options, thread_team& team)
    : options_(options_of_driver(options)), threads_(team.size()), runner_(options_, team, hidden_) {
  if (options.rate != 0) return;
  nothing_.description = index_that_keeps_nothing();
  if (nothing_.description == nullptr) return;
  nothing_.keys.records = options_.records;
  subject_setup setup;
  setup.threads = threads_;
  nothing_.index = nothing_.description->make(setup);
}

std::optional<double> driver_cost::of(const phase& p, std::uint64_t position) {
  if (nothing_.index == nullptr || p.kind == phase_kind::trace || p.kind == phase_kind::reopen) return std::nullopt;
  // The keys of a load are made before its time begins, as those of inserts are.
  const phase like = p.kind == phase_kind::load ? make_phase(phase_kind::insert) : p;
  const auto [known, is_new] = known_.try_emplace(like.name, 0);
  if (is_new) known->second = measured(like, position);
  return known->second;
}

double driver_cost::measured(const phase& p, std::uint64_t position) {
  constexpr unsigned runs = 3;
  std::vector<double> times;
  for (unsigned run = 1; run <= runs; ++run) {
    if (p.kind == phase_kind::erase)
      static_cast<void>(runner_.measure(nothing_, make_phase(phase_kind::insert), position, run));
    const phase_result r = runner_.measure(nothing_, p, position, run);
    if (r.operations != 0) times.push_back(1e9 * r.seconds * threads_ / static_cast<double>(r.operations));
  }
  return median(std::move(times));
}

}  // namespace pmlab::bench
