#include "bench/stores/results_json.hpp"
#include <pmlab/blocks/stream.hpp>
#include "bench/engine/results_json.hpp"
#include "bench/support/json_values.hpp"

#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace pmlab::store_bench {
namespace {

using json = nlohmann::ordered_json;

constexpr int schema = 1;

// ---- parts of a case; null for nothing

json latency_to_json(const std::optional<latency_figures>& l) {
  if (!l) return nullptr;
  return {{"mean", l->mean}, {"p50", l->p50}, {"p90", l->p90}, {"p99", l->p99}, {"p99_9", l->p99_9}, {"max", l->max}};
}

json counts_to_json(const std::optional<media::counts>& m) {
  if (!m) return nullptr;
  return {{"lines", m->lines_written()},
          {"flushes", m->lines_flushed},
          {"fences", m->fences},
          {"device_lines", m->device_lines_written},
          {"lines_read", m->lines_read}};
}

json device_to_json(const device_counts& of) {
  blocks::counts sum;
  for (const blocks::counts& c : of) sum += c;
  json streams = json::object();
  for (std::size_t s = 0; s < of.size(); ++s) {
    const blocks::counts& c = of[s];
    if (c == blocks::counts{}) continue;
    streams[std::string(blocks::stream_names[s])] = {{"written_bytes", c.bytes_written},
                                                     {"read_bytes", c.bytes_read},
                                                     {"writes", c.writes},
                                                     {"reads", c.reads},
                                                     {"flushes", c.flushes}};
  }
  json j = counters_to_json(sum);
  j["by_stream"] = std::move(streams);
  return j;
}

json statistics_to_json(const std::vector<store_statistic>& of) {
  json j = json::object();
  for (const auto& [name, value] : of) j[name] = value;
  return j;
}

// The case and its amounts. `sizes`: of its operations.
template <class Result>
void add_case(json& j, const Result& r, const json& sizes) {
  j["phase"] = r.what.what.name;
  j["pattern"] = r.opening ? json(nullptr) : json(to_string(r.what.pattern));
  j.update(sizes);
  j["depth"] = r.what.depth;
  j["threads"] = r.threads;
  j["repetition"] = r.repetition;
  j["operations"] = r.operations;
  j["reads"] = r.reads;
  j["bytes"] = r.bytes;
}

void add_times(json& j, const measured& of, const run_clock& clock) {
  j["time_ns"] = of.time_ns;
  j["clock"] = clock.kind();
  j["throughput"] = of.opening ? json(nullptr) : json(of.operations_per_s());
  j["latency_ns"] = latency_to_json(of.latency);
  j["read_latency_ns"] = latency_to_json(of.read_latency);
  j["write_latency_ns"] = latency_to_json(of.write_latency);
}

json amplification_to_json(const measured& of) {
  return {{"host", or_null(of.host_amplification())}, {"device", or_null(of.device_amplification())}};
}

void add_answers(json& j, const measured& of) {
  j["opening"] = nullptr;
  if (of.opening)
    j["opening"] = {{"first_read_ns", of.opening->first_read_ns}, {"complete_ns", of.opening->complete_ns}};
  j["verified"] = of.verified;
  j["wrong"] = of.wrong;
}

// ---- cases of each kind

json case_to_json(const run_record& record, const run_clock& clock, const case_result& r) {
  json j;
  j["store"] = r.of.store;
  j["container"] = text_or_null(r.of.container);
  j["medium"] = text_or_null(r.of.medium);
  j["device"] = record.device;
  j["index"] = text_or_null(r.of.index);
  j["merge"] = text_or_null(r.of.merge);
  j["ring"] = r.of.ring == 0 ? json(nullptr) : json(r.of.ring);
  add_case(j, r, {{"size", r.what.size}});
  add_times(j, r, clock);
  j["cpu_ns_per_operation"] = or_null(r.cpu_ns);
  j["device_io"] = device_to_json(r.main);
  j["amplification"] = amplification_to_json(r);
  j["medium_counts"] = counts_to_json(r.medium);
  j["space"] = {{"used_bytes", or_null(r.space.used_bytes)},
                {"medium_bytes", or_null(r.space.medium_bytes)},
                {"free_bytes", or_null(r.space.free_bytes)},
                {"longest_free_extent", or_null(r.space.longest_free_extent)}};
  j["store_stats"] = statistics_to_json(r.statistics);
  add_answers(j, r);
  return j;
}

json case_to_json(const pair_run_options& options, const pair_run_record& record, const run_clock& clock,
                  const pair_result& r) {
  json j;
  j["store"] = r.of.store;
  j["medium"] = text_or_null(r.of.medium);
  j["device"] = record.device;
  j["staging"] = text_or_null(r.of.staging);
  j["devices"] = record.devices;
  j["place"] = text_or_null(r.of.place);
  j["memtable"] = text_or_null(r.of.memtable);
  add_case(j, r, {{"key_bytes", options.key_bytes}, {"value_bytes", r.what.value_bytes}});
  j["user_bytes"] = r.user_bytes;
  add_times(j, r, clock);
  j["scan_latency_ns"] = latency_to_json(r.scan_latency);
  j["cpu_ns_per_operation"] = or_null(r.cpu_ns);
  j["host_bytes"] = or_null(r.host_bytes);
  j["device_io"] = device_to_json(r.main);
  j["staging_io"] = r.staging ? device_to_json(*r.staging) : json(nullptr);
  j["amplification"] = amplification_to_json(r);
  j["settling"] = nullptr;
  if (r.after)
    j["settling"] = {{"time_ns", r.after->time_ns},
                     {"written_bytes", r.after->written_bytes},
                     {"staging_written_bytes", r.after->staging_written_bytes}};
  j["medium_counts"] = counts_to_json(r.medium);
  j["space"] = {{"used_bytes", or_null(r.space.used_bytes)},
                {"memory_bytes", or_null(r.space.memory_bytes)},
                {"medium_bytes", or_null(r.space.medium_bytes)}};
  j["store_stats"] = statistics_to_json(r.statistics);
  j["hit_ratio"] = or_null(r.hit_ratio());
  add_answers(j, r);
  return j;
}

// ---- the document

json begin_options(const run_origin& of, const char* kind) {
  return {{"command", of.command},
          {"kind", kind},
          {"stores", of.stores},
          {"device", of.device},
          {"device_bytes", of.device_bytes},
          {"device_scale", text_or_null(of.scale)},
          {"device_way", text_or_null(of.way)}};
}

// `given`: the options of the run. to_json(result): a case.
template <class Result, class ToJson>
bench::json_document document_of(json given, const run_lengths& lengths, const bench::machine_facts& machine,
                                 const run_clock& clock, const report_of<Result>& report, ToJson&& to_json) {
  const bool by_time = lengths.operations == 0;
  const bool is_virtual = clock.kind() == std::string_view("virtual");
  given["threads"] = lengths.threads;
  given["operations"] = by_time ? json(nullptr) : json(lengths.operations);
  given["seconds"] = by_time ? json(lengths.seconds) : json(nullptr);
  given["repetitions"] = lengths.repetitions;
  given["seed"] = lengths.seed;
  given["layout"] = is_virtual ? json(lengths.layout) : json(nullptr);
  json facts = bench::facts_to_json(machine);
  facts["date"] = machine.date;
  json cases = json::array();
  for (const Result& r : report.results) cases.push_back(to_json(r));
  json checks = json::array();
  for (const final_check& f : report.at_end)
    checks.push_back({{"store", f.store}, {"verified", f.verified}, {"wrong", f.wrong}});
  return bench::json_document(json{{"schema", schema},
                                   {"kind", "stores_bench"},
                                   {"machine", std::move(facts)},
                                   {"options", std::move(given)},
                                   {"cases", std::move(cases)},
                                   {"at_end", std::move(checks)},
                                   {"first_wrong", report.first_wrong},
                                   {"remarks", report.remarks},
                                   {"failure", or_null(report.failure)},
                                   {"seconds", report.seconds}});
}

}  // namespace

bench::json_document results_to_json(const run_options& options, const run_record& record,
                                     const bench::machine_facts& machine, const run_clock& clock,
                                     const run_report& report) {
  json given = begin_options(record, "block");
  given["medium"] = record.medium;
  given["volume_bytes"] = record.volume_bytes;
  given["chunk_bytes"] = record.chunk_bytes;
  return document_of(std::move(given), options, machine, clock, report,
                     [&](const case_result& r) { return case_to_json(record, clock, r); });
}

bench::json_document results_to_json(const pair_run_options& options, const pair_run_record& record,
                                     const bench::machine_facts& machine, const run_clock& clock,
                                     const pair_report& report) {
  json values = json::array();
  for (const pair_case& c : options.cases)
    if (values.empty() || values.back() != c.value_bytes) values.push_back(c.value_bytes);
  json given = begin_options(record, "kv");
  given["devices"] = record.devices;
  given["staging"] = text_or_null(record.staging);
  given["staging_bytes"] = record.staging.empty() ? json(nullptr) : json(record.staging_bytes);
  given["medium"] = record.medium;
  given["records"] = options.records;
  given["key_bytes"] = options.key_bytes;
  given["value_bytes"] = std::move(values);
  given["cache_bytes"] = record.setup.cache_bytes;
  given["memory_bytes"] = record.setup.memory_bytes;
  given["loss_ms"] = record.setup.loss_ms;
  given["log"] = record.setup.log;
  given["place"] = text_or_null(record.setup.place);
  given["memtable"] = record.setup.memtable;
  return document_of(std::move(given), options, machine, clock, report,
                     [&](const pair_result& r) { return case_to_json(options, record, clock, r); });
}

}  // namespace pmlab::store_bench
