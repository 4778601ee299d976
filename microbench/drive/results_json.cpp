#include "microbench/drive/results_json.hpp"
#include "bench/engine/results_json.hpp"
#include "bench/support/json_values.hpp"
#include "microbench/memory/suite_json.hpp"

#include <utility>

#include <nlohmann/json.hpp>

namespace pmlab::drive {
namespace {

using json = nlohmann::ordered_json;

constexpr int schema = 1;

json settling_to_json(const settling& s) {
  return {{"rounds", s.rounds}, {"seconds", s.seconds}, {"reached", s.reached}};
}

json buckets_to_json(const workload::latency_histogram& latencies) {
  json buckets = json::array();
  latencies.for_each([&](std::uint64_t ns, std::uint64_t count) { buckets.push_back({ns, count}); });
  return buckets;
}

json case_to_json(const run_options& options, const target& on, const case_result& r) {
  const bool measured = !r.skipped;
  json j;
  j["name"] = r.what.name;
  j["claims"] = r.what.claims;
  j["case"] = {{"operation", to_string(r.what.what)},
               {"order", to_string(r.what.where)},
               {"until", to_string(r.what.until)},
               {"bytes", r.what.bytes},
               {"depth", r.what.depth}};
  j["medium"] = options.device.text();
  j["skipped"] = or_null(r.skipped);
  j["value"] = measured ? json(r.value()) : json(nullptr);
  j["unit"] = measured ? json("GiB/s") : json(nullptr);
  j["values"] = measured ? json(r.gib_per_s) : json(nullptr);
  j["exact"] = on.virtual_clock();
  j["repetitions"] = measured ? json(r.gib_per_s.size()) : json(nullptr);
  j["spread_percent"] = measured ? json(r.spread_percent) : json(nullptr);
  j["steady"] = measured ? json(r.steady) : json(nullptr);
  j["requests_per_s"] = measured ? json(r.requests_per_s) : json(nullptr);
  j["latency_ns"] = measured ? microbench::latency_to_json(r.latency) : json(nullptr);
  j["latency_buckets"] = measured ? buckets_to_json(r.latencies) : json(nullptr);
  j["settling"] = r.settled ? settling_to_json(*r.settled) : json(nullptr);
  j["cpu_ns_per_request"] = or_null(r.cpu_ns);
  j["fio"] =
      r.fio_requests_per_s ? json{{"requests_per_s", *r.fio_requests_per_s}, {"ratio", *r.over_fio}} : json(nullptr);
  j["write_amplification"] = or_null(r.amplification);
  j["notes"] = r.notes;
  return j;
}

json device_to_json(target& on) {
  const blocks::geometry shape = on.device().shape();
  json j;
  j["name"] = on.device().name();
  j["blocks"] = shape.blocks;
  j["block_bytes"] = shape.block_bytes;
  j["atomic_bytes"] = shape.atomic_bytes;
  j["volatile_cache"] = shape.volatile_cache;
  j["way"] = text_or_null(on.way());
  j["scale"] = text_or_null(on.scale());
  j["drive"] = nullptr;
  if (const auto facts = on.facts())
    j["drive"] = {{"name", text_or_null(facts->drive)},
                  {"file_system", text_or_null(facts->file_system)},
                  {"logical_block", facts->logical_block},
                  {"physical_block", facts->physical_block},
                  {"volatile_cache", or_null(facts->volatile_cache)},
                  {"fua", or_null(facts->fua)}};
  return j;
}

}  // namespace

bench::json_document results_to_json(const run_options& options, const run_record& record,
                                     const bench::machine_facts& machine, const suite& s, target& on,
                                     const suite_report& report) {
  json facts = bench::facts_to_json(machine);
  facts["medium"] = options.device.text();
  facts["clock"] = {{"source", on.virtual_clock() ? "virtual" : "real"}};
  facts["date"] = machine.date;
  json document;
  document["schema"] = schema;
  document["kind"] = "drive";
  document["machine"] = std::move(facts);
  document["device"] = device_to_json(on);
  document["options"] = microbench::options_to_json(record, s);
  document["options"].update({{"bytes", options.bytes},
                              {"spread_percent", options.spread_percent},
                              {"settle_seconds", options.settle_seconds}});
  microbench::add_report(document, report, [&](const case_result& r) { return case_to_json(options, on, r); });
  return bench::json_document(std::move(document));
}

}  // namespace pmlab::drive
