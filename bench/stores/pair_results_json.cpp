#include "bench/stores/pair_results_json.hpp"
#include "bench/support/json_values.hpp"

#include <utility>

#include <nlohmann/json.hpp>

namespace pmlab::store_bench {
namespace {

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
  j["phase"] = r.what.what.name;
  j["pattern"] = r.opening ? json(nullptr) : json(to_string(r.what.pattern));
  j["key_bytes"] = options.key_bytes;
  j["value_bytes"] = r.what.value_bytes;
  j["depth"] = r.what.depth;
  j["threads"] = r.threads;
  add_amounts(j, r);
  j["user_bytes"] = r.user_bytes;
  add_times(j, r, clock);
  j["scan_latency_ns"] = latency_to_json(r.scan_latency);
  j["cpu_ns_per_operation"] = or_null(r.cpu_ns);
  j["host_bytes"] = or_null(r.host_bytes);
  j["device_io"] = device_to_json(r.main);
  j["staging_io"] = r.staging ? device_to_json(*r.staging) : json(nullptr);
  j["amplification"] = {{"host", or_null(r.host_amplification())}, {"device", or_null(r.device_amplification())}};
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

json values_of(const pair_run_options& options) {
  json values = json::array();
  for (const pair_case& c : options.cases)
    if (values.empty() || values.back() != c.value_bytes) values.push_back(c.value_bytes);
  return values;
}

}  // namespace

bench::json_document results_to_json(const pair_run_options& options, const pair_run_record& record,
                                     const bench::machine_facts& machine, const run_clock& clock,
                                     const pair_report& report) {
  json document = begin_document(machine);
  json& given = document["options"] = begin_options(record, "kv");
  given["devices"] = record.devices;
  given["staging"] = text_or_null(record.staging);
  given["staging_bytes"] = record.staging.empty() ? json(nullptr) : json(record.staging_bytes);
  given["medium"] = record.medium;
  given["records"] = options.records;
  given["key_bytes"] = options.key_bytes;
  given["value_bytes"] = values_of(options);
  given["cache_bytes"] = record.setup.cache_bytes;
  given["memory_bytes"] = record.setup.memory_bytes;
  given["loss_ms"] = record.setup.loss_ms;
  given["log"] = record.setup.log;
  given["place"] = text_or_null(record.setup.place);
  given["memtable"] = record.setup.memtable;
  add_lengths(given, options);
  document["cases"] = json::array();
  for (const pair_result& r : report.results) document["cases"].push_back(case_to_json(options, record, clock, r));
  end_document(document, report);
  return bench::json_document(std::move(document));
}

}  // namespace pmlab::store_bench
