#include "bench/stores/document_parts.hpp"
#include <pmlab/blocks/stream.hpp>
#include "bench/engine/results_json.hpp"
#include "bench/support/json_values.hpp"

#include <utility>

#include <nlohmann/json.hpp>

namespace pmlab::store_bench {
namespace {

constexpr int schema = 1;

json opening_to_json(const std::optional<opening_times>& o) {
  if (!o) return nullptr;
  return {{"first_read_ns", o->first_read_ns}, {"complete_ns", o->complete_ns}};
}

}  // namespace

json latency_to_json(const std::optional<latency_figures>& l) {
  if (!l) return nullptr;
  return {{"mean", l->mean}, {"p50", l->p50}, {"p90", l->p90}, {"p99", l->p99}, {"p99_9", l->p99_9}, {"max", l->max}};
}

json counts_to_json(const std::optional<medium_counts>& m) {
  if (!m) return nullptr;
  return {{"lines", m->lines},
          {"flushes", m->flushes},
          {"fences", m->fences},
          {"device_lines", m->device_lines},
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
  return {{"written_bytes", sum.bytes_written},
          {"read_bytes", sum.bytes_read},
          {"discarded_bytes", sum.bytes_discarded},
          {"writes", sum.writes},
          {"durable_writes", sum.durable_writes},
          {"reads", sum.reads},
          {"flushes", sum.flushes},
          {"by_stream", std::move(streams)}};
}

json statistics_to_json(const std::vector<store_statistic>& of) {
  json j = json::object();
  for (const auto& [name, value] : of) j[name] = value;
  return j;
}

void add_amounts(json& j, const measured& of) {
  j["repetition"] = of.repetition;
  j["operations"] = of.operations;
  j["reads"] = of.reads;
  j["bytes"] = of.bytes;
}

void add_times(json& j, const measured& of, const run_clock& clock) {
  j["time_ns"] = of.time_ns;
  j["clock"] = clock.kind();
  j["throughput"] = of.opening ? json(nullptr) : json(of.operations_per_s());
  j["latency_ns"] = latency_to_json(of.latency);
  j["read_latency_ns"] = latency_to_json(of.read_latency);
  j["write_latency_ns"] = latency_to_json(of.write_latency);
}

void add_answers(json& j, const measured& of) {
  j["opening"] = opening_to_json(of.opening);
  j["verified"] = of.verified;
  j["wrong"] = of.wrong;
}

json begin_options(const run_origin& origin, const char* kind) {
  return {{"command", origin.command},
          {"kind", kind},
          {"stores", origin.stores},
          {"device", origin.device},
          {"device_bytes", origin.device_bytes},
          {"device_scale", text_or_null(origin.scale)},
          {"device_way", text_or_null(origin.way)}};
}

void add_lengths(json& options, const run_lengths& of) {
  const bool by_time = of.operations == 0;
  options["threads"] = of.threads;
  options["operations"] = by_time ? json(nullptr) : json(of.operations);
  options["seconds"] = by_time ? json(of.seconds) : json(nullptr);
  options["repetitions"] = of.repetitions;
  options["seed"] = of.seed;
}

json begin_document(const bench::machine_facts& machine) {
  json facts = bench::facts_to_json(machine);
  facts["date"] = machine.date;
  json document;
  document["schema"] = schema;
  document["kind"] = "stores_bench";
  document["machine"] = std::move(facts);
  return document;
}

void end_document(json& document, const run_end& end) {
  document["at_end"] = json::array();
  for (const final_check& f : end.at_end)
    document["at_end"].push_back({{"store", f.store}, {"verified", f.verified}, {"wrong", f.wrong}});
  document["first_wrong"] = end.first_wrong;
  document["remarks"] = end.remarks;
  document["failure"] = end.failure ? json(*end.failure) : json(nullptr);
  document["seconds"] = end.seconds;
}

}  // namespace pmlab::store_bench
