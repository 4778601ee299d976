// pmlab-microbench: the cases of a suite as Google Benchmarks, with its flags and its JSON, so that its compare.py
// works.
//
//   pmlab-microbench --medium=dram --suite=quick --benchmark_filter=read-latency --benchmark_out=a.json
//
// A benchmark is one case. Its time ("manual time") is that of one access; counters: bytes_per_second, value, spread,
// and percentiles in nanoseconds if accesses are timed one by one. The engine decides duration and repetitions
// (docs/microbench.md), so each benchmark is one iteration; --benchmark_repetitions repeats the whole of it.
#include <pmlab/base/error.hpp>
#include "bench/catalogue/medium_spec.hpp"
#include "bench/support/build_info.hpp"
#include "bench/support/thread_team.hpp"
#include "microbench/memory/engine.hpp"
#include "microbench/memory/prefetchers.hpp"
#include "microbench/memory/suite.hpp"

#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

namespace pmlab::microbench {
namespace {

constexpr double bytes_per_gib = 1073741824;
constexpr double ns_per_second = 1e9;

// Our own options; the others are Google's.
struct own_options {
  std::string medium = "dram";
  std::string suite = "quick";
  std::string filter;
};

// "--name=value".
bool take(std::string_view argument, std::string_view name, std::string& value) {
  if (!argument.starts_with(name) || argument.size() == name.size() || argument[name.size()] != '=') return false;
  value = argument.substr(name.size() + 1);
  return true;
}

own_options read_options(int& count, char** values) {
  own_options o;
  int kept = 1;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = values[i];
    if (take(argument, "--medium", o.medium) || take(argument, "--suite", o.suite) ||
        take(argument, "--filter", o.filter))
      continue;
    values[kept++] = values[i];
  }
  count = kept;
  return o;
}

void add_latency(benchmark::State& state, const char* side, const std::optional<side_figures>& figures) {
  if (!figures || !figures->latency) return;
  const latency_figures& l = *figures->latency;
  const auto add = [&](const char* name, const std::optional<double>& ns) {
    if (ns) state.counters[fmt::format("{}_{}_ns", side, name)] = *ns;
  };
  add("p50", l.p50);
  add("p90", l.p90);
  add("p99", l.p99);
  add("p99.9", l.p99_9);
  add("p99.99", l.p99_99);
  add("p99.999", l.p99_999);
  add("max", l.max);
}

void run_case(benchmark::State& state, engine& measuring, const bench_case& c) {
  // It can give a benchmark more than one go.
  for ([[maybe_unused]] auto one : state) {
    case_result r;
    try {
      r = measuring.measure(c);
    } catch (const error& e) {
      state.SkipWithError(e.what());
      return;
    }
    if (r.skipped) {
      state.SkipWithError(r.skipped->c_str());
      return;
    }
    const side_figures& side = r.reads ? *r.reads : *r.writes;
    const bool latency = c.measure == measure_kind::latency;
    const double ns = latency ? r.value() : side.ns_per_access;
    double gib_per_s = 0;
    for (const auto* const figures : {&r.reads, &r.writes})
      if (*figures) gib_per_s += (*figures)->gib_per_s;
    state.SetIterationTime(ns / ns_per_second);
    state.counters["bytes_per_second"] = gib_per_s * bytes_per_gib;
    state.counters["spread_percent"] = r.spread_percent;
    if (r.media && r.media->read_amplification > 0) state.counters["read_amplification"] = r.media->read_amplification;
    if (r.media && r.media->write_amplification > 0)
      state.counters["write_amplification"] = r.media->write_amplification;
    add_latency(state, "read", r.reads);
    add_latency(state, "write", r.writes);
    std::string label = r.medium;
    for (const std::string& note : r.notes) label += ", " + note;
    state.SetLabel(label);
  }
}

int run(int count, char** values) {
  const own_options own = read_options(count, values);
  run_options options;
  options.medium = bench::parse_medium(own.medium);
  if (options.medium.simulated)
    throw error("pmlab-microbench measures real time", "use `pmlab microbench --medium " + own.medium + "`");
  suite cases = load_suite(own.suite);
  if (!own.filter.empty()) filter_cases(cases, own.filter);
  engine measuring(options, cases.cases);
  for (const bench_case& c : cases.cases)
    benchmark::RegisterBenchmark(c.name.c_str(), [&](benchmark::State& state) { run_case(state, measuring, c); })
        ->Iterations(1)
        ->UseManualTime()
        ->Unit(benchmark::kNanosecond);
  benchmark::Initialize(&count, values);
  if (benchmark::ReportUnrecognizedArguments(count, values)) return 2;
  benchmark::AddCustomContext("medium", options.medium.text());
  benchmark::AddCustomContext("profile", options.medium.profile);
  benchmark::AddCustomContext("suite", cases.name);
  benchmark::AddCustomContext("commit", std::string(bench::build_commit()));
  benchmark::AddCustomContext("prefetchers", prefetchers(bench::usable_cpus()).state());
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace
}  // namespace pmlab::microbench

int main(int count, char** values) {
  try {
    return pmlab::microbench::run(count, values);
  } catch (const pmlab::error& e) {
    fmt::print(stderr, "pmlab-microbench: error: {}\n", e.what());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "pmlab-microbench: error: %s\n", e.what());
  }
  return 1;
}
