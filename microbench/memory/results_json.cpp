// The results of a suite as JSON.
#include "bench/engine/results_json.hpp"
#include <pmlab/base/simd.hpp>
#include <pmlab/media/clock.hpp>
#include "bench/support/json_values.hpp"
#include "microbench/memory/suite_json.hpp"

#include <utility>

#include <nlohmann/json.hpp>

namespace pmlab::microbench {
namespace {

using json = nlohmann::ordered_json;

constexpr int schema = 1;

json node(int number) { return number < 0 ? json(nullptr) : json(number); }
// Null for 0: the default.
template <class Number>
json unless_0(Number number) {
  return number > 0 ? json(number) : json(nullptr);
}

json fields_to_json(const bench_case& c) {
  json steps = json::array();
  for (const step_kind s : c.steps) steps.push_back(to_string(s));
  json j;
  j["medium"] = medium_text(c.medium);
  j["operation"] = to_string(c.operation);
  j["load"] = to_string(c.load);
  j["store"] = to_string(c.store);
  j["pattern"] = pattern_text(c);
  j["measure"] = to_string(c.measure);
  j["access_bytes"] = c.access_bytes;
  j["align_bytes"] = c.align_bytes;
  j["offset_bytes"] = c.offset_bytes;
  j["working_set_bytes"] = c.working_set_bytes;
  j["private_sets"] = c.private_sets;
  j["dependent"] = c.dependent;
  j["fence"] = fence_text(c.fence_bytes);
  j["cache"] = to_string(c.cache);
  j["idle_ns"] = c.idle_ns;
  j["steps"] = steps;
  j["last_step_only"] = c.last_step_only;
  j["threads"] = c.threads;
  j["readers"] = c.readers;
  j["writers"] = c.writers;
  j["memory_node"] = node(c.memory_node);
  j["thread_node"] = node(c.thread_node);
  j["warm_up_seconds"] = unless_0(c.warm_up_seconds);
  j["seconds"] = unless_0(c.seconds);
  j["samples"] = unless_0(c.samples);
  return j;
}

json side_to_json(const std::optional<side_figures>& side) {
  if (!side) return nullptr;
  json j;
  j["threads"] = side->threads;
  j["accesses"] = side->accesses;
  j["gib_per_s"] = side->gib_per_s;
  j["ns_per_access"] = side->ns_per_access;
  j["latency_ns"] = side->latency ? latency_to_json(*side->latency) : json(nullptr);
  return j;
}

json machine_to_json(const run_options& options, const bench::machine_facts& m, const suite_report& report) {
  const bool simulated = options.medium.simulated;
  json j = bench::facts_to_json(m, options.huge_pages);
  if (simulated) j["simd"] = to_string(simd::none);
  j["medium"] = options.medium.text();
  j["profile"] = text_or_null(options.medium.profile);
  j["emulation_scale"] = unless_0(report.emulation_scale);
  const media::fast_clock& clock = media::fast_clock::instance();
  j["clock"] = {{"source", simulated          ? "virtual"
                           : clock.uses_tsc() ? "invariant time-stamp counter"
                                              : "kernel"},
                {"ns_per_tick", !simulated && clock.uses_tsc() ? json(1e9 / clock.tsc_hz()) : json(nullptr)}};
  j["instruction_sets"] = names_of(features_of_this_cpu());
  j["prefetchers"] = report.prefetchers;
  j["date"] = m.date;
  return j;
}

}  // namespace

json latency_to_json(const latency_figures& l) {
  return {{"samples", l.samples},
          {"mean", l.mean},
          {"p50", l.p50},
          {"p90", l.p90},
          {"p99", or_null(l.p99)},
          {"p99_9", or_null(l.p99_9)},
          {"p99_99", or_null(l.p99_99)},
          {"p99_999", or_null(l.p99_999)},
          {"max", l.max}};
}

json case_to_json(const case_result& r) {
  const bool measured = !r.skipped;
  json j;
  j["name"] = r.what.name;
  j["group"] = r.what.group;
  j["about"] = r.what.about;
  j["claims"] = r.what.claims;
  j["case"] = fields_to_json(r.what);
  j["medium"] = r.medium;
  j["profile"] = text_or_null(r.profile);
  j["scale"] = r.scale;
  j["skipped"] = or_null(r.skipped);
  j["value"] = measured ? json(r.value()) : json(nullptr);
  j["unit"] = measured ? json(r.unit) : json(nullptr);
  j["values"] = measured ? json(r.values) : json(nullptr);
  j["repetitions"] = measured ? json(r.repetitions) : json(nullptr);
  j["spread_percent"] = measured ? json(r.spread_percent) : json(nullptr);
  j["steady"] = measured ? json(r.steady) : json(nullptr);
  j["published"] = or_null(r.what.published);
  j["published_unit"] = r.what.published ? json(r.what.published_unit) : json(nullptr);
  j["reads"] = side_to_json(r.reads);
  j["writes"] = side_to_json(r.writes);
  j["media"] = r.media ? json{{"read_amplification", r.media->read_amplification},
                              {"write_amplification", r.media->write_amplification}}
                       : json(nullptr);
  j["timing_cost_ns"] = measured ? json(r.timing_cost_ns) : json(nullptr);
  j["huge_pages"] = measured ? json(r.huge_pages) : json(nullptr);
  j["notes"] = r.notes;
  return j;
}

bench::json_document results_to_json(const run_options& options, const run_record& record,
                                     const bench::machine_facts& machine, const suite& s, const suite_report& report) {
  json document;
  document["schema"] = schema;
  document["kind"] = "microbench";
  document["machine"] = machine_to_json(options, machine, report);
  document["options"] = options_to_json(record, s);
  document["options"]["spread_percent"] = options.spread_percent;
  add_report(document, report, case_to_json);
  return bench::json_document(std::move(document));
}

}  // namespace pmlab::microbench
