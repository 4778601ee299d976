// `pmlab stores pairs`: measures key-value stores, and shows the figures.
#include "tools/cli/simulated_program.hpp"
#include "tools/cli/stores_request.hpp"
#include "tools/cli/stores_shared.hpp"
#include <pmlab/base/error.hpp>
#include "bench/stores/pair_engine.hpp"
#include "bench/stores/pair_stores.hpp"
#include "bench/stores/results_json.hpp"
#include "bench/stores/store_device.hpp"
#include "bench/support/machine.hpp"
#include "bench/support/shell_form.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace pmlab::cli {
namespace {

using store_bench::pair_case;
using store_bench::pair_contestant;
using store_bench::pair_keys;
using store_bench::pair_setup;

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

struct plan {
  store_bench::pair_run_options options;
  pair_setup setup;  // but for the store's name, and its pool
  std::uint64_t device_bytes = 0;
  std::uint64_t staging_bytes = 0;
};

store_bench::pair_run_options run_options_of(const pairs_request& asked) {
  store_bench::pair_run_options o;
  static_cast<store_bench::run_lengths&>(o) = lengths_of(asked);
  o.cases = store_bench::cases_of(asked.phases, asked.orders, asked.value_sizes, asked.depths);
  o.records = asked.records;
  o.key_bytes = asked.key_bytes;
  if (o.records > pair_keys::most_ranks / 4 || store_bench::ranks_of(o) > pair_keys::most_ranks)
    throw error(fmt::format("--records {} is too large", o.records), "give fewer");
  // With fewer keys, threads would wait for each other's changes.
  for (const pair_case& c : o.cases)
    if (o.records < std::uint64_t{4} * c.depth * o.threads)
      throw error(
          fmt::format("{} records are too few for {} by {} threads", o.records, store_bench::text_of(c), o.threads),
          "give more --records, or less --depth or --threads");
    else if (c.value_bytes * c.depth * o.threads > most_data_bytes)
      throw error(fmt::format("{} by {} threads has more than 512 MiB under way", store_bench::text_of(c), o.threads),
                  "give less --depth, --value or --threads");
  return o;
}

pair_setup setup_of(const pairs_request& asked, const store_bench::pair_run_options& o) {
  pair_setup s;
  s.medium = asked.medium;
  s.medium_bytes =
      asked.pool_bytes.value_or(least_pool + asked.devices * 32 * mebibyte + store_bench::ranks_of(o) * 128);
  s.overwrite = asked.overwrite;
  s.records = o.records;
  s.value_bytes = *std::ranges::max_element(asked.value_sizes);
  const std::uint64_t data = s.records * s.value_bytes;
  if (asked.cache) s.cache_bytes = asked.cache->of(data);
  if (asked.memory) s.memory_bytes = asked.memory->of(data);
  s.loss_ms = asked.loss_ms;
  s.log = asked.log;
  s.place = asked.place;
  s.memtable = asked.memtable;
  s.threads = o.threads;
  return s;
}

// An option that no store of the run has means that the user has another run in mind.
void refuse_options_without_a_store(const pairs_request& asked) {
  if (asked.staging_bytes && !asked.staging)
    throw error("--staging-bytes without a staging drive", "give --staging, or leave it out");
  for (const std::string& name : asked.stores) {
    const store_bench::pair_store_description& d = store_bench::find_pair_store(name);
    if (asked.staging && !d.has_staging)
      throw error(fmt::format("{} has no use for a second drive", name),
                  "leave --staging out, or measure tiered or rocksdb");
    if (const std::size_t largest = std::ranges::max(asked.value_sizes); largest > d.largest_value)
      throw error(fmt::format("--value {}: {} has values of at most {} bytes", largest, name, d.largest_value),
                  "give smaller values, or leave the store out");
    if (!asked.log && name != "rocksdb")
      throw error(fmt::format("{} cannot be without its log, or has none", name),
                  "leave --log off out, or measure rocksdb alone");
  }
  const auto none = [&](auto has) { return no_store_has(asked, store_bench::find_pair_store, has); };
  if (asked.memtable == "pmem" && none([](const auto& d) { return d.has_memtable; }))
    throw error("--memtable pmem without a store that has memtables", "measure tiered, or leave it out");
  if (!asked.place.empty() && none([](const auto& d) { return d.has_staging; }))
    throw error("--place without a store that places its data", "measure tiered or rocksdb, or leave it out");
}

// An option of some stores, none of which this run has. Experiments give one to all stores, and a build may be without
// some, so the run goes on.
template <class Has>
void remark_unused(store_bench::pair_report& report, const pairs_request& asked, const char* option, Has&& has) {
  if (!report.results.empty() && asked.has_option(option) && no_store_has(asked, store_bench::find_pair_store, has))
    report.remarks.push_back(fmt::format("{} was not used: no store of this run has it", option));
}

// The bytes of all values of a run, with what stores add to them.
std::uint64_t bytes_of_records(const store_bench::pair_run_options& o, std::size_t value_bytes) {
  constexpr std::uint64_t unit = 1024;
  constexpr std::uint64_t head = 64;
  return store_bench::ranks_of(o) * ((value_bytes + o.key_bytes + head + unit - 1) / unit * unit);
}

[[nodiscard]] bool is_virtual(const std::optional<drive::device_spec>& device) {
  return device && device->which == drive::device_spec::kind::simulated;
}

// Throws pmlab::error.
plan plan_of(const pairs_request& asked) {
  check_stores_request(asked, "kv_ssd,rocksdb");
  if (asked.staging && is_virtual(asked.staging) != asked.in_virtual_time())
    throw error(fmt::format("drives {} and {} on different clocks", asked.device.text(), asked.staging->text()),
                "give both as emulated: or both as simulated:");
  refuse_options_without_a_store(asked);
  plan p;
  p.options = run_options_of(asked);
  // In virtual time each repetition has stores of its own.
  const store_bench::pair_run_options of_a_store = asked.in_virtual_time() ? of_repetition(p.options, 1) : p.options;
  p.setup = setup_of(asked, of_a_store);
  const auto blocks = [](std::uint64_t bytes) { return bytes / store_block * store_block; };
  p.device_bytes = asked.device_bytes.value_or(
      blocks(2 * bytes_of_records(of_a_store, p.setup.value_bytes) / asked.devices + 128 * mebibyte));
  p.staging_bytes = asked.staging_bytes.value_or(blocks(p.device_bytes / 4 + 64 * mebibyte));
  return p;
}

store_bench::pair_labels labels_of(const pair_setup& s, const std::string& staging) {
  const store_bench::pair_store_description& d = store_bench::find_pair_store(s.store);
  const bool has_medium = d.has_medium && (!d.has_memtable || s.memtable == "pmem");
  return {s.store, has_medium ? s.medium.text() : "", staging, d.has_staging ? s.place : "",
          d.has_memtable ? s.memtable : ""};
}

// A pool for each store that has one: the path itself if it is alone.
bench::medium_spec medium_of(const bench::medium_spec& given, const std::string& store, bool alone) {
  bench::medium_spec own = given;
  if (own.in_pool() && !alone) own.path += "." + store;
  return own;
}

pair_contestant contestant_of(const plan& p, const store_bench::pair_run_options& options, const pairs_request& asked,
                              const std::string& name) {
  const bool is_alone = asked.stores.size() == 1;
  pair_setup setup = p.setup;
  setup.store = name;
  setup.medium = medium_of(p.setup.medium, name, is_alone);
  const drive::device_spec device = device_of(asked.device, name, is_alone);
  pair_contestant::makers make;
  make.devices = asked.devices;
  make.device = [device, bytes = p.device_bytes, overwrite = asked.overwrite, is_only = asked.devices == 1,
                 layout = options.layout](unsigned n) {
    constexpr std::uint64_t layouts_of_a_drive = std::uint64_t{1} << 32;
    return store_bench::open_store_device(
        device_of(device, std::to_string(n), is_only),
        {.bytes = bytes, .overwrite = overwrite, .layout = layout + n * layouts_of_a_drive});
  };
  if (asked.staging)
    make.staging = [staging = device_of(*asked.staging, name, is_alone), bytes = p.staging_bytes,
                    overwrite = asked.overwrite] {
      return store_bench::open_store_device(staging,
                                            {.bytes = bytes, .size_option = "--staging-bytes", .overwrite = overwrite});
    };
  make.subject = [setup](const store_bench::pair_drives& on) { return store_bench::make_pair_subject(setup, on); };
  return {labels_of(setup, asked.staging ? asked.staging->text() : ""),
          std::move(make),
          store_bench::plan_of(options),
          store_bench::ranks_of(options),
          options.key_bytes,
          options.seed * 1000};
}

// Throws pmlab::error: a store cannot be made, or cannot do a case, and nothing was measured.
store_bench::outcome<store_bench::pair_report> run(plan& p, const pairs_request& asked,
                                                   const store_bench::run_clock& clock) {
  using store_bench::pair_run_options;
  auto done = run_stores(asked, p,
                         [&](const pair_run_options& o, const std::vector<std::string>& names, bench::progress& shown) {
                           std::vector<pair_contestant> stores;
                           for (const std::string& name : names) stores.push_back(contestant_of(p, o, asked, name));
                           store_bench::prepare_pair_stores(o, stores);
                           return outcome_of_stores(std::move(stores), shown, [&](auto& made, auto& line) {
                             return store_bench::run_pair_cases(o, made, clock, line);
                           });
                         });
  remark_shared_cpus(done.report, asked);
  remark_unused_medium(done.report, asked);
  remark_unused(done.report, asked, "--memory", [](const auto& d) { return d.has_memory_limit; });
  remark_unused(done.report, asked, "--loss-ms", [](const auto& d) { return d.has_loss_bound; });
  remark_unused(done.report, asked, "--cache", [](const auto& d) { return d.has_cache; });
  return done;
}

}  // namespace

int measure_pairs(const pairs_request& asked, const arguments& command_line) {
  // That program makes the plan.
  if (asked.in_virtual_time() || is_virtual(asked.staging) || asked.medium.simulated) hand_over(command_line);
  plan p = plan_of(asked);
  const store_bench::real_run_clock clock;
  const auto done = run(p, asked, clock);
  return write_report(asked, done.report, [&] {
    const store_bench::pair_run_record record{{shell_form(command_line), asked.device.text(), asked.medium.text(),
                                               p.device_bytes, asked.stores, done.scale, done.way},
                                              asked.staging ? asked.staging->text() : "",
                                              p.staging_bytes,
                                              asked.devices,
                                              p.setup};
    return store_bench::results_to_json(p.options, record, bench::facts_of_this_machine(), clock, done.report);
  });
}

}  // namespace pmlab::cli
