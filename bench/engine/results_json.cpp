// The results of a run as JSON.
#include "bench/engine/results_json.hpp"
#include "checker/simulator/time/core_costs.hpp"
#include <pmlab/base/simd.hpp>
#include <pmlab/media/clock.hpp>
#include "bench/engine/simulated_run.hpp"
#include "bench/support/json_values.hpp"
#include "bench/workload/trace.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

namespace pmlab::bench {
namespace {

using json = nlohmann::ordered_json;

constexpr int schema = 1;

json emulation_to_json(const bench_options& options) {
  if (!options.emulation) return nullptr;
  const media::calibration& c = *options.emulation;
  json j;
  j["scale"] = c.profile.scale;
  j["host"] = {{"read_ns", c.host.read_ns},
               {"read_small_pages_ns", c.host.read_small_pages_ns},
               {"flush_fence_ns", c.host.flush_fence_ns},
               {"clock_ns", c.host.timer_ns}};
  j["model_ns"] = c.model_ns;
  j["calibration"] = json::array();
  for (const media::calibration_row& r : c.rows)
    j["calibration"].push_back({{"what", r.what},
                                {"target_ns", r.target_ns},
                                {"reached_ns", r.reached_ns},
                                {"error_percent", r.error_percent()},
                                {"floor_ns", r.floor_ns}});
  j["notes"] = c.notes;
  return j;
}

json simulation_to_json(const bench_options& options) {
  if (!options.medium.simulated) return nullptr;
  const simulator::core_costs costs;
  const auto ns = [](media::picoseconds time) { return static_cast<double>(time) / 1000; };
  return {{"dram_profile", simulated_run::dram_profile},
          {"instructions_ns", ns(costs.instructions)},
          {"first_level_ns", ns(costs.first_level)},
          {"second_level_ns", ns(costs.second_level)},
          {"last_level_ns", ns(costs.last_level)},
          {"core_to_core_ns", ns(costs.transfer)},
          {"locked_instruction_ns", ns(costs.locked_instruction)}};
}

json clock_to_json(const bench_options& options, const clock_limits& limits) {
  if (options.medium.simulated)
    return {{"source", "virtual"}, {"ns_per_tick", nullptr}, {"cost_ns", nullptr}, {"floor_ns", nullptr}};
  const media::fast_clock& clock = media::fast_clock::instance();
  return {{"source", clock.uses_tsc() ? "invariant time-stamp counter" : "kernel"},
          {"ns_per_tick", clock.uses_tsc() ? json(1e9 / clock.tsc_hz()) : json(nullptr)},
          {"cost_ns", limits.cost_ns},
          {"floor_ns", limits.floor_ns}};
}

json machine_to_json(const bench_options& options, const machine_facts& m, const clock_limits& limits) {
  json j = facts_to_json(m, options.huge_pages);
  // Code for the simulated machine reads word by word.
  if (options.medium.simulated) j["simd"] = to_string(simd::none);
  j["medium"] = options.medium.text();
  j["profile"] = options.medium.profile.empty() ? json(nullptr) : json(options.medium.profile);
  j["emulation"] = emulation_to_json(options);
  j["simulation"] = simulation_to_json(options);
  j["clock"] = clock_to_json(options, limits);
  j["date"] = m.date;
  return j;
}

json options_to_json(const bench_options& o, const std::string& command) {
  json phases = json::array();
  for (const phase& p : o.phases) phases.push_back(p.name);
  json j;
  j["command"] = command;
  j["indexes"] = o.indexes;
  j["baseline"] = o.baseline;
  j["records"] = o.trace ? o.trace->load.size() : o.records;
  j["operations"] = o.seconds > 0 ? json(nullptr) : json(o.operations);
  j["seconds"] = o.seconds > 0 ? json(o.seconds) : json(nullptr);
  j["threads"] = o.threads;
  j["hosts"] = o.hosts;
  j["coherence"] = o.coherence ? json(to_string(*o.coherence)) : json(nullptr);
  j["phases"] = phases;
  j["distribution"] = o.keys ? json(o.keys->name()) : json(nullptr);
  j["trace"] = o.trace ? json(o.trace->source) : json(nullptr);
  j["persistence"] = nullptr;
  for (const media::persistence_domain d : o.persistence) j["persistence"].push_back(to_string(d));
  j["verify"] = o.verify;
  j["repeat"] = o.repeats;
  j["batch"] = o.batch;
  j["scan_length"] = o.scan_length;
  j["seed"] = o.seed;
  j["rate"] = o.rate > 0 ? json(o.rate) : json(nullptr);
  j["interval_seconds"] = o.interval_seconds > 0 ? json(o.interval_seconds) : json(nullptr);
  j["pages"] = o.medium.simulated ? json(nullptr) : json(name_of_pages(o));
  j["layout"] = o.medium.simulated ? json(o.layout) : json(nullptr);
  return j;
}

// Null: it was not counted.
template <class Counts>
json per_operation_to_json(const phase_result& r, const std::optional<Counts>& counts) {
  if (!counts || r.operations == 0) return nullptr;
  return counters_to_json(
      *counts, [&](std::uint64_t sum) { return static_cast<double>(sum) / static_cast<double>(r.operations); });
}

json media_bytes_to_json(const phase_result& r) {
  if (!r.media_bytes || r.operations == 0) return nullptr;
  json j{{"granule", r.media_bytes->granule_bytes}};
  j.update(per_operation_to_json(r, r.media_bytes));
  return j;
}

json cache_to_json(const phase_result& r) {
  if (!std::holds_alternative<cache::statistics>(r.layer)) return nullptr;
  const auto& c = std::get<cache::statistics>(r.layer);
  json j = counters_to_json(c);
  j.update({{"capacity", c.capacity}, {"bytes", c.bytes}, {"hit_ratio", c.hit_ratio()}});
  for (std::size_t m = 0; m < c.lookups.size(); ++m)
    if (c.lookups[m] != 0) j["lookups"][std::string(cache::mode_names[m])] = c.lookups[m];
  return j;
}

json hybrid_to_json(const phase_result& r) {
  if (!std::holds_alternative<hybrid::statistics>(r.layer)) return nullptr;
  const auto& h = std::get<hybrid::statistics>(r.layer);
  json j = counters_to_json(h);
  j.update({{"mode", h.asynchronous ? "async" : "sync"},
            {"waiting", h.waiting},
            {"deepest_queue", h.deepest},
            {"longest_lag_ns", h.longest_lag_ns},
            {"complete", h.complete},
            {"ready_ns", h.ready_ns},
            {"rebuild_ns", h.rebuild_ns},
            {"rebuilt", h.rebuilt}});
  return j;
}

json restart_to_json(const phase_result& r) {
  if (!r.restart) return nullptr;
  return {{"find_ns", r.restart->find}, {"scan_ns", r.restart->scan ? json(*r.restart->scan) : json(nullptr)}};
}

json cpu_to_json(const phase_result& r) {
  if (!r.cpu || r.operations == 0) return nullptr;
  json j;
  for (std::size_t i = 0; i < cpu_events::kinds; ++i) {
    const std::optional<double>& count = r.cpu->counts[i];
    j[std::string(cpu_events::names[i])] = count ? json(*count / static_cast<double>(r.operations)) : json(nullptr);
  }
  return j;
}

json modules_to_json(const phase_result& r) {
  if (!r.modules || r.operations == 0) return nullptr;
  json j;
  for (std::size_t i = 0; i < pm_counts::kinds; ++i)
    j[std::string(pm_counts::names[i])] = static_cast<double>(r.modules->counts[i]) / static_cast<double>(r.operations);
  return j;
}

json result_to_json(const phase_result& r) {
  json j;
  j["index"] = r.index;
  j["medium"] = r.medium;
  j["threads"] = r.threads;
  j["hosts"] = r.hosts;
  j["coherence"] = r.coherence.empty() ? json(nullptr) : json(r.coherence);
  j["phase"] = r.phase;
  j["repeat"] = r.repeat;
  j["operations"] = r.operations;
  j["seconds"] = r.seconds;
  j["throughput_ops_per_s"] = r.throughput;
  j["latency_ns"] = {{"mean", r.latency.mean}, {"p50", r.latency.p50},        {"p90", r.latency.p90},
                     {"p99", r.latency.p99},   {"p99_9", r.latency.p99_9},    {"p99_99", r.latency.p99_99},
                     {"max", r.latency.max},   {"samples", r.latency.samples}};
  j["per_operation"] = per_operation_to_json(r, r.accesses);
  j["persistence"] = r.persistence ? json(to_string(*r.persistence)) : json(nullptr);
  j["persists"] = per_operation_to_json(r, r.persists);
  j["media_bytes"] = media_bytes_to_json(r);
  j["between_hosts"] = per_operation_to_json(r, r.between_hosts);
  j["cpu_cache_bytes"] = r.cpu_cache_bytes == 0 ? json(nullptr) : json(r.cpu_cache_bytes);
  j["bytes_per_key"] = r.space ? json{{"pm", r.space->pm}, {"dram", r.space->dram}} : json(nullptr);
  j["cache"] = cache_to_json(r);
  j["hybrid"] = hybrid_to_json(r);
  j["restart"] = restart_to_json(r);
  j["intervals"] = r.intervals.empty() ? json(nullptr) : json(r.intervals);
  j["cpu"] = cpu_to_json(r);
  j["modules"] = modules_to_json(r);
  j["driver_ns"] = r.driver_ns ? json(*r.driver_ns) : json(nullptr);
  j["huge_page_share"] = r.huge_page_share ? json(*r.huge_page_share) : json(nullptr);
  j["entries"] = r.entries;
  j["wrong_answers"] = r.wrong ? json(*r.wrong) : json(nullptr);
  j["invalid"] = r.invalid.empty() ? json(nullptr) : json(r.invalid);
  return j;
}

}  // namespace

nlohmann::ordered_json facts_to_json(const machine_facts& m, std::optional<bool> huge_pages_asked_for) {
  json j;
  j["cpu"] = m.cpu;
  j["cores"] = m.cores;
  j["numa_nodes"] = m.numa_nodes;
  j["kernel"] = m.kernel;
  j["flush_instruction"] = m.flush;
  j["simd"] = m.simd;
  j["transparent_huge_pages"] = m.huge_pages;
  if (huge_pages_asked_for) j["huge_pages_asked_for"] = *huge_pages_asked_for;
  j["compiler"] = m.compiler;
  j["flags"] = m.flags;
  j["commit"] = m.commit;
  j["pmlab_version"] = m.version;
  return j;
}

json_document results_to_json(const bench_options& options, const machine_facts& machine, const bench_report& report,
                              const std::string& command) {
  json document;
  document["schema"] = schema;
  document["machine"] = machine_to_json(options, machine, report.clock);
  document["options"] = options_to_json(options, command);
  document["results"] = json::array();
  for (const phase_result& r : report.results) document["results"].push_back(result_to_json(r));
  document["skipped"] = json::array();
  for (const skipped_phase& s : report.skipped)
    document["skipped"].push_back(
        {{"index", s.index}, {"threads", s.threads}, {"phase", s.phase}, {"reason", s.reason}});
  document["remarks"] = report.remarks;
  document["failure"] = report.failure ? json(*report.failure) : json(nullptr);
  return json_document(std::move(document));
}

}  // namespace pmlab::bench
