#include "bench/stores/results_json.hpp"
#include "bench/support/json_values.hpp"

#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

namespace pmlab::store_bench {
namespace {

json case_to_json(const run_record& record, const run_clock& clock, const case_result& r) {
  json j;
  j["store"] = r.of.store;
  j["container"] = text_or_null(r.of.container);
  j["medium"] = text_or_null(r.of.medium);
  j["device"] = record.device;
  j["index"] = text_or_null(r.of.index);
  j["merge"] = text_or_null(r.of.merge);
  j["ring"] = r.of.ring == 0 ? json(nullptr) : json(r.of.ring);
  j["phase"] = r.what.what.name;
  j["pattern"] = r.opening ? json(nullptr) : json(to_string(r.what.pattern));
  j["size"] = r.what.size;
  j["depth"] = r.what.depth;
  j["threads"] = r.threads;
  add_amounts(j, r);
  add_times(j, r, clock);
  j["cpu_ns_per_operation"] = or_null(r.cpu_ns);
  j["device_io"] = device_to_json(r.device);
  j["amplification"] = {{"host", or_null(r.host_amplification())}, {"device", or_null(r.device_amplification)}};
  j["medium_counts"] = counts_to_json(r.medium);
  j["space"] = {{"used_bytes", or_null(r.space.used_bytes)},
                {"medium_bytes", or_null(r.space.medium_bytes)},
                {"free_bytes", or_null(r.space.free_bytes)},
                {"longest_free_extent", or_null(r.space.longest_free_extent)}};
  j["store_stats"] = statistics_to_json(r.statistics);
  add_answers(j, r);
  return j;
}

}  // namespace

bench::json_document results_to_json(const run_options& options, const run_record& record,
                                     const bench::machine_facts& machine, const run_clock& clock,
                                     const run_report& report) {
  json document = begin_document(machine);
  json& given = document["options"] = begin_options(record, "block");
  given["medium"] = record.medium;
  given["volume_bytes"] = record.volume_bytes;
  given["chunk_bytes"] = record.chunk_bytes;
  add_lengths(given, options);
  document["cases"] = json::array();
  for (const case_result& r : report.results) document["cases"].push_back(case_to_json(record, clock, r));
  end_document(document, report);
  return bench::json_document(std::move(document));
}

}  // namespace pmlab::store_bench
