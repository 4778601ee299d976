#include "tools/stores/results_json.hpp"
#include "tools/stores/document_parts.hpp"
#include "tools/support/json_values.hpp"

#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

namespace pmlab::store_bench {
namespace {

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
  j["device_io"] = device_to_json(r.device);
  j["amplification"] = {{"host", or_null(r.host_amplification())}, {"device", or_null(r.device_amplification)}};
  j["medium_counts"] = counts_to_json(r.medium);
  j["space"] = {{"used_bytes", or_null(r.space.used_bytes)},
                {"medium_bytes", or_null(r.space.medium_bytes)},
                {"free_bytes", or_null(r.space.free_bytes)},
                {"longest_free_extent", or_null(r.space.longest_free_extent)}};
  j["store_stats"] = statistics_to_json(r.statistics);
  j["opening"] = opening_to_json(r.opening);
  j["verified"] = r.verified;
  j["wrong"] = r.wrong;
  return j;
}

}  // namespace

bench::json_document results_to_json(const run_options& options, const run_record& record,
                                     const bench::machine_facts& machine, const run_clock& clock,
                                     const run_report& report) {
  json document = begin_document(machine);
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
  end_document(document, report);
  return bench::json_document(std::move(document));
}

}  // namespace pmlab::store_bench
