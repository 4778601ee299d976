// `pmlab stores bench --kind block`: measures volumes of blocks, and shows the figures.
#include "tools/cli/simulated_program.hpp"
#include "tools/cli/stores_run.hpp"
#include "tools/cli/stores_shared.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/cache/options.hpp>
#include "bench/stores/engine.hpp"
#include "bench/stores/results_json.hpp"
#include "bench/stores/subjects.hpp"
#include "bench/support/machine.hpp"
#include "bench/support/shell_form.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace pmlab::cli {
namespace {

using store_bench::bench_case;
using store_bench::contestant;

constexpr std::uint64_t default_volume = std::uint64_t{256} << 20;
// Room for redirected writes, and for the areas of peers. A merge by copy keeps the base extent of each chunk beside them.
constexpr std::uint64_t spare_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t block = 4096;
constexpr std::uint64_t largest_operation = std::uint64_t{4} << 20;

std::uint64_t operation_size(const std::string& text) {
  const std::uint64_t bytes = bench::parse_bytes(text, "--size");
  if (bytes == 0 || bytes % block != 0 || bytes > largest_operation)
    throw error(fmt::format("--size {}: an operation is of whole blocks of 4096 bytes, at most 4M", text),
                "give a multiple of 4K");
  return bytes;
}

store_bench::run_options run_options_of(const stores_options& given, std::uint64_t volume_bytes) {
  store_bench::run_options o;
  const auto or_else = [](const std::string& text, const char* otherwise) { return text.empty() ? otherwise : text; };
  o.cases = store_bench::cases_of(store_bench::parse_phases(or_else(given.phases, "fill,overwrite,read")),
                                  store_bench::parse_orders(or_else(given.patterns, "random")),
                                  store_bench::list_of(given.sizes, operation_size),
                                  depths_of(or_else(given.depths, "1,32")));
  read_run(given, o);
  // With fewer places, threads would wait for each other's writes.
  for (const bench_case& c : o.cases)
    if (volume_bytes / c.size < std::uint64_t{2} * c.depth * o.threads)
      throw error(fmt::format("a volume of {} has too few places for {} by {} threads",
                              bench::readable_bytes(volume_bytes), store_bench::text_of(c), o.threads),
                  "give a larger --volume-bytes, or less --depth, --size or --threads");
    else if (c.size * c.depth * o.threads > most_data_bytes)
      throw error(fmt::format("{} by {} threads has more than 512 MiB under way", store_bench::text_of(c), o.threads),
                  "give less --depth, --size or --threads");
  return o;
}

// Without --merge: the one that the container does best.
std::string merge_of(const stores_options& given) {
  return !given.merge.empty() ? given.merge : given.container == "pmem" ? "remap" : "copy";
}

// The cache of container kv: bytes, or a share of the records of a full volume; all of them if not given.
std::uint64_t cache_of_records(const stores_options& given, std::uint64_t volume_bytes, std::uint64_t chunk_bytes) {
  // With its head, and its share of a set.
  constexpr double of_record = 280;
  const double all = static_cast<double>(volume_bytes) / static_cast<double>(std::max(chunk_bytes, block)) * of_record;
  constexpr double spare = 1.5;  // sets fill unevenly
  const auto whole = static_cast<std::uint64_t>(all * spare) + (std::uint64_t{1} << 20);
  if (given.cache.empty()) return whole;
  if (given.cache == "0") return 0;
  const cache::capacity size = cache::parse_capacity(given.cache);
  if (size.in == cache::capacity::unit::share)
    return size.amount < 1 ? static_cast<std::uint64_t>(all * size.amount) : whole;
  return bench::parse_bytes(given.cache, "--cache");
}

store_bench::store_setup setup_of(const stores_options& given, std::uint64_t volume_bytes) {
  store_bench::store_setup s;
  s.container = given.container;
  s.medium = bench::parse_medium(given.medium);
  s.index = given.index;
  s.merge = merge_of(given);
  constexpr std::uint64_t any = 1'000'000;
  s.ring = static_cast<std::uint32_t>(std::min(bench::parse_count(given.ring, "--ring", 0), any));
  s.chunk_bytes = bench::parse_bytes(given.chunk, "--chunk");
  s.volume_bytes = volume_bytes;
  if (s.container != "kv" && !given.cache.empty() && given.cache != "0")
    throw error("--cache is of --container kv: there it is of records", "leave it out");
  if (s.container == "kv") s.cache_bytes = cache_of_records(given, volume_bytes, s.chunk_bytes);
  s.overwrite = given.overwrite;
  s.threads = count_up_to(given.threads, "--threads", any);
  // A record, its map and its share of any index are less than 2 KiB.
  s.medium_bytes = given.medium_bytes.empty() ? least_pool + volume_bytes / std::max(s.chunk_bytes, block) * 2048
                                              : bench::parse_bytes(given.medium_bytes, "--medium-bytes");
  return s;
}

store_bench::store_labels labels_of(const store_bench::store_setup& s) {
  const store_bench::store_description& d = store_bench::find_store(s.store);
  if (d.has_medium) return {s.store, s.container, s.container == "pmem" ? s.medium.text() : "", "", "", 0};
  if (!d.has_chunks) return {s.store, "", "", "", "", 0};
  if (s.container == "blocks") return {s.store, s.container, "", "", s.merge, s.ring};
  return {s.store, s.container, s.medium.text(), s.container == "kv" ? "" : s.index, s.merge, s.ring};
}

}  // namespace

int measure_stores(const stores_options& given, const arguments& command_line) {
  if (given.kind == "kv") return measure_pair_stores(given, command_line);
  if (given.kind != "block")
    throw error(fmt::format("there is no kind of stores '{}'", given.kind), "give --kind block or kv");
  const std::uint64_t volume_bytes =
      given.volume_bytes.empty() ? default_volume : bench::parse_bytes(given.volume_bytes, "--volume-bytes");
  const std::uint64_t device_bytes =
      given.device_bytes.empty()
          ? (volume_bytes * (merge_of(given) == "copy" ? 2 : 1) + volume_bytes / 4 + spare_bytes) / block * block
          : bench::parse_bytes(given.device_bytes, "--device-bytes");
  const drive::device_spec device = drive::parse_device(given.device);
  store_bench::store_setup setup = setup_of(given, volume_bytes);
  const bool in_virtual_time = device.which == drive::device_spec::kind::simulated;
  if (in_virtual_time || setup.medium.simulated) hand_over(command_line);
  if (setup.medium.simulated && !in_virtual_time)
    throw error("records in virtual time beside drive " + device.text(), "give --device simulated:p4610");
  const std::vector<std::string> names = stores_of(given, "chunk_store,raw");
  for (const std::string& name : names) {
    setup.store = name;
    store_bench::check_setup(setup, device_bytes);
  }
  store_bench::run_options options = run_options_of(given, volume_bytes);
  if (in_virtual_time && given.seconds.empty()) options.seconds = virtual_seconds;
  if (!given.json.empty()) bench::check_writable(given.json);

  bench::progress shown(bench::progress::style_of_stderr(given.quiet));
  setup.emulation = calibration_of(setup.medium, shown);
  std::optional<bench::simulated_run> machine;
  if (in_virtual_time) machine.emplace(medium_of_machine(setup.medium), options.threads);
  std::vector<contestant> stores;
  for (const std::string& name : names) {
    setup.store = name;
    const drive::device_spec own = device_of(device, name, names.size() == 1);
    stores.emplace_back(
        labels_of(setup),
        [own, device_bytes, overwrite = given.overwrite] {
          return store_bench::open_store_device(own, {.bytes = device_bytes, .overwrite = overwrite});
        },
        [setup](blocks::any_device& on) { return store_bench::make_subject(setup, on); }, options.seed * 1000);
  }
  // A device or pool that cannot be made is bad input: nothing was measured.
  for (contestant& s : stores) s.make();

  const store_bench::real_run_clock clock;
  store_bench::run_report report = store_bench::run_cases(options, stores, clock, shown);
  shown.clear();
  const std::string scale = stores.front().device().scale();
  const std::string way = stores.front().device().way();
  stores.clear();
  machine.reset();
  remark_shared_cpus(report, options.threads, in_virtual_time);
  return show_results(given, report, names.back(), [&] {
    const store_bench::run_record record{
        {shell_form(command_line), device.text(), setup.medium.text(), device_bytes, names, scale, way},
        volume_bytes,
        setup.chunk_bytes};
    return store_bench::results_to_json(options, record, bench::facts_of_this_machine(), clock, report);
  });
}

}  // namespace pmlab::cli
