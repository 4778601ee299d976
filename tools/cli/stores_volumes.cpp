// `pmlab stores volumes`: measures volumes of blocks, and shows the figures.
#include "tools/cli/simulated_program.hpp"
#include "tools/cli/stores_request.hpp"
#include "tools/cli/stores_shared.hpp"
#include <pmlab/base/error.hpp>
#include "bench/stores/engine.hpp"
#include "bench/stores/results_json.hpp"
#include "bench/stores/store_device.hpp"
#include "bench/stores/subjects.hpp"
#include "bench/support/machine.hpp"
#include "bench/support/quantity.hpp"
#include "bench/support/shell_form.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace pmlab::cli {
namespace {

using store_bench::bench_case;
using store_bench::contestant;

// Space for redirected writes, and for the areas of peers.
constexpr std::uint64_t spare_bytes = std::uint64_t{64} << 20;

struct plan {
  store_bench::run_options options;
  store_bench::store_setup setup;  // but for the store's name
  std::uint64_t device_bytes = 0;
};

store_bench::run_options run_options_of(const volumes_request& asked) {
  store_bench::run_options o;
  static_cast<store_bench::run_lengths&>(o) = lengths_of(asked);
  o.cases = store_bench::cases_of(asked.phases, asked.orders, asked.sizes, asked.depths);
  // With fewer places, threads would wait for each other's writes.
  for (const bench_case& c : o.cases)
    if (asked.volume_bytes / c.size < std::uint64_t{2} * c.depth * o.threads)
      throw error(fmt::format("a volume of {} has too few places for {} by {} threads",
                              bench::readable_bytes(asked.volume_bytes), store_bench::text_of(c), o.threads),
                  "give a larger --volume-bytes, or less --depth, --size or --threads");
    else if (c.size * c.depth * o.threads > most_data_bytes)
      throw error(fmt::format("{} by {} threads has more than 512 MiB under way", store_bench::text_of(c), o.threads),
                  "give less --depth, --size or --threads");
  return o;
}

// DRAM for the records of a full volume, or for a share of them.
std::uint64_t cache_of_records(const volumes_request& asked) {
  // With its head, and its share of a set.
  constexpr double record_bytes = 280;
  const double all = static_cast<double>(asked.volume_bytes) /
                     static_cast<double>(std::max(asked.chunk_bytes, store_block)) * record_bytes;
  constexpr double spare = 1.5;  // sets fill unevenly
  if (asked.cache && (asked.cache->bytes || asked.cache->share < 1))
    return asked.cache->of(static_cast<std::uint64_t>(all));
  return static_cast<std::uint64_t>(all * spare) + (std::uint64_t{1} << 20);
}

store_bench::store_setup setup_of(const volumes_request& asked) {
  store_bench::store_setup s;
  s.container = asked.container;
  s.medium = asked.medium;
  s.index = asked.index;
  s.merge = asked.merge ? *asked.merge : s.container == "pmem" ? "remap" : "copy";
  s.ring = asked.ring;
  s.chunk_bytes = asked.chunk_bytes;
  s.volume_bytes = asked.volume_bytes;
  if (s.container == "kv")
    s.cache_bytes = cache_of_records(asked);
  else if (asked.cache && asked.cache->bytes != 0)
    throw error("--cache is for --container kv: DRAM for its records", "leave it out");
  s.overwrite = asked.overwrite;
  s.threads = asked.lengths.threads;
  // A record, its map and its share of any index are less than 2 KiB.
  s.medium_bytes =
      asked.pool_bytes.value_or(least_pool + asked.volume_bytes / std::max(asked.chunk_bytes, store_block) * 2048);
  return s;
}

// An option that no store of the run has means that the user has another run in mind.
void refuse_options_without_a_store(const volumes_request& asked) {
  const auto none = [&](auto has) { return no_store_has(asked, store_bench::find_store, has); };
  if (asked.has_option("--container") && none([](const auto& d) { return d.has_chunks || d.has_medium; }))
    throw error("--container without a store that has records", "measure chunk_store, too, or leave it out");
  const bool has_chunks = !none([](const auto& d) { return d.has_chunks; });
  for (const char* const option : {"--index", "--merge", "--ring", "--chunk"})
    if (asked.has_option(option) && !has_chunks)
      throw error(fmt::format("{} is an option of chunk_store, which this run does not measure", option),
                  "measure it, too, or leave the option out");
  if (asked.has_option("--index") && asked.container != "pmem")
    throw error(fmt::format("--index has no effect with --container {}: level 1 is of records in persistent memory",
                            asked.container),
                "leave it out, or give --container pmem");
}

// Throws pmlab::error.
plan plan_of(const volumes_request& asked) {
  check_stores_request(asked, "chunk_store,raw");
  refuse_options_without_a_store(asked);
  plan p{{}, setup_of(asked), 0};
  // A merge by copy keeps the base extent of each chunk beside redirected writes.
  const std::uint64_t copies = p.setup.merge == "copy" ? 2 : 1;
  p.device_bytes = asked.device_bytes.value_or((asked.volume_bytes * copies + asked.volume_bytes / 4 + spare_bytes) /
                                               store_block * store_block);
  for (const std::string& name : asked.stores) {
    p.setup.store = name;
    store_bench::check_setup(p.setup, p.device_bytes);
  }
  p.options = run_options_of(asked);
  return p;
}

store_bench::store_labels labels_of(const store_bench::store_setup& s) {
  const store_bench::store_description& d = store_bench::find_store(s.store);
  if (d.has_medium) return {s.store, s.container, s.container == "pmem" ? s.medium.text() : "", "", "", 0};
  if (!d.has_chunks) return {s.store, "", "", "", "", 0};
  if (s.container == "blocks") return {s.store, s.container, "", "", s.merge, s.ring};
  return {s.store, s.container, s.medium.text(), s.container == "kv" ? "" : s.index, s.merge, s.ring};
}

std::vector<contestant> contestants_of(const plan& p, const store_bench::run_options& options,
                                       const std::vector<std::string>& names, const volumes_request& asked) {
  std::vector<contestant> stores;
  store_bench::store_setup setup = p.setup;
  for (const std::string& name : names) {
    setup.store = name;
    const drive::device_spec own = device_of(asked.device, name, asked.stores.size() == 1);
    stores.emplace_back(
        labels_of(setup),
        [own, bytes = p.device_bytes, overwrite = asked.overwrite, layout = options.layout] {
          return store_bench::open_store_device(own, {.bytes = bytes, .overwrite = overwrite, .layout = layout});
        },
        [setup](blocks::any_device& on) { return store_bench::make_subject(setup, on); }, options.seed * 1000);
  }
  return stores;
}

// Throws pmlab::error: a device or pool cannot be made, and nothing was measured.
store_bench::outcome<store_bench::run_report> run(plan& p, const volumes_request& asked,
                                                  const store_bench::run_clock& clock) {
  auto done = run_stores(
      asked, p, [&](const store_bench::run_options& o, const std::vector<std::string>& names, bench::progress& shown) {
        std::vector<contestant> stores = contestants_of(p, o, names, asked);
        for (contestant& s : stores) s.make();
        return outcome_of_stores(std::move(stores), shown,
                                 [&](auto& made, auto& line) { return store_bench::run_cases(o, made, clock, line); });
      });
  remark_shared_cpus(done.report, asked);
  remark_unused_medium(done.report, asked);
  return done;
}

}  // namespace

int measure_volumes(const volumes_request& asked, const arguments& command_line) {
  // That program makes the plan.
  if (asked.in_virtual_time() || asked.medium.simulated) hand_over(command_line);
  plan p = plan_of(asked);
  const store_bench::real_run_clock clock;
  const auto done = run(p, asked, clock);
  return write_report(asked, done.report, [&] {
    const store_bench::run_record record{{shell_form(command_line), asked.device.text(), asked.medium.text(),
                                          p.device_bytes, asked.stores, done.scale, done.way},
                                         asked.volume_bytes,
                                         asked.chunk_bytes};
    return store_bench::results_to_json(p.options, record, bench::facts_of_this_machine(), clock, done.report);
  });
}

}  // namespace pmlab::cli
