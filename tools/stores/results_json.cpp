#include "tools/stores/results_json.hpp"
#include "tools/bench/results_json.hpp"
#include <pmlab/blocks/stream.hpp>

#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

namespace pmlab::store_bench {
namespace {

using json = nlohmann::ordered_json;

constexpr int schema = 1;

template <class T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}
json text_or_null(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

json latency_to_json(const std::optional<latency_figures>& l) {
  if (!l) return nullptr;
  return {{"mean", l->mean}, {"p50", l->p50}, {"p90", l->p90}, {"p99", l->p99}, {"p99_9", l->p99_9}, {"max", l->max}};
}

json device_to_json(const case_result& r) {
  blocks::counts sum;
  for (const blocks::counts& c : r.device) sum += c;
  json streams = json::object();
  for (std::size_t s = 0; s < r.device.size(); ++s) {
    const blocks::counts& c = r.device[s];
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

json case_to_json(const run_record& record, const run_clock& clock, const case_result& r) {
  const bool opens = r.what.what.kind == phase_kind::open;
  json j;
  j["store"] = r.of.store;
  j["container"] = text_or_null(r.of.container);
  j["medium"] = text_or_null(r.of.medium);
  j["device"] = record.device;
  j["index"] = text_or_null(r.of.index);
  j["merge"] = text_or_null(r.of.merge);
  j["ring"] = r.of.ring == 0 ? json(nullptr) : json(r.of.ring);
  j["phase"] = r.what.what.name;
  j["pattern"] = opens ? json(nullptr) : json(to_string(r.what.pattern));
  j["size"] = r.what.size;
  j["depth"] = r.what.depth;
  j["threads"] = opens ? 1 : r.threads;
  j["repetition"] = r.repetition;
  j["operations"] = r.operations;
  j["reads"] = r.reads;
  j["bytes"] = r.bytes;
  j["time_ns"] = r.time_ns;
  j["clock"] = clock.kind();
  j["throughput"] = opens ? json(nullptr) : json(r.operations_per_s());
  j["latency_ns"] = latency_to_json(r.latency);
  j["read_latency_ns"] = latency_to_json(r.read_latency);
  j["write_latency_ns"] = latency_to_json(r.write_latency);
  j["cpu_ns_per_operation"] = or_null(r.cpu_ns);
  j["device_io"] = device_to_json(r);
  j["amplification"] = {{"host", or_null(r.host_amplification())}, {"device", or_null(r.device_amplification)}};
  j["medium_counts"] = nullptr;
  if (r.medium)
    j["medium_counts"] = {{"lines", r.medium->lines},
                          {"flushes", r.medium->flushes},
                          {"fences", r.medium->fences},
                          {"device_lines", r.medium->device_lines},
                          {"lines_read", r.medium->lines_read}};
  j["space"] = {{"used_bytes", or_null(r.space.used_bytes)},
                {"medium_bytes", or_null(r.space.medium_bytes)},
                {"free_bytes", or_null(r.space.free_bytes)},
                {"longest_free_extent", or_null(r.space.longest_free_extent)}};
  j["store_stats"] = json::object();
  for (const auto& [name, value] : r.statistics) j["store_stats"][name] = value;
  j["opening"] = nullptr;
  if (r.opening) j["opening"] = {{"first_read_ns", r.opening->first_read_ns}, {"complete_ns", r.opening->complete_ns}};
  j["verified"] = r.verified;
  j["wrong"] = r.wrong;
  return j;
}

}  // namespace

bench::json_document results_to_json(const run_options& options, const run_record& record,
                                     const bench::machine_facts& machine, const run_clock& clock,
                                     const run_report& report) {
  json facts = bench::facts_to_json(machine);
  facts["date"] = machine.date;
  json document;
  document["schema"] = schema;
  document["kind"] = "stores_bench";
  document["machine"] = std::move(facts);
  document["options"] = {{"command", record.command},
                         {"kind", "block"},
                         {"stores", record.stores},
                         {"device", record.device},
                         {"device_bytes", record.device_bytes},
                         {"device_scale", text_or_null(record.scale)},
                         {"device_way", text_or_null(record.way)},
                         {"medium", record.medium},
                         {"volume_bytes", record.volume_bytes},
                         {"chunk_bytes", record.chunk_bytes},
                         {"threads", options.threads},
                         {"operations", options.operations == 0 ? json(nullptr) : json(options.operations)},
                         {"seconds", options.operations == 0 ? json(options.seconds) : json(nullptr)},
                         {"repetitions", options.repetitions},
                         {"seed", options.seed}};
  document["cases"] = json::array();
  for (const case_result& r : report.results) document["cases"].push_back(case_to_json(record, clock, r));
  document["at_end"] = json::array();
  for (const final_check& f : report.at_end)
    document["at_end"].push_back({{"store", f.store}, {"verified", f.verified}, {"wrong", f.wrong}});
  document["first_wrong"] = report.first_wrong;
  document["remarks"] = report.remarks;
  document["failure"] = or_null(report.failure);
  document["seconds"] = report.seconds;
  return bench::json_document(std::move(document));
}

}  // namespace pmlab::store_bench
