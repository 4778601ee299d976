// `pmlab stores bench --kind kv`: measures key-value stores, and shows the figures.
#include "tools/cli/simulated_program.hpp"
#include "tools/cli/stores_run.hpp"
#include "tools/cli/stores_shared.hpp"
#include <pmlab/base/error.hpp>
#include "bench/stores/pair_engine.hpp"
#include "bench/stores/pair_stores.hpp"
#include "bench/stores/results_json.hpp"
#include "bench/support/machine.hpp"
#include "bench/support/shell_form.hpp"

#include <algorithm>
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
using store_bench::pair_ledger;
using store_bench::pair_setup;

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
constexpr std::size_t largest_value = std::size_t{2} << 20;
constexpr std::uint64_t most_devices = 64;
constexpr double most_loss_ms = 3'600'000;

std::size_t value_size(const std::string& text) {
  const std::uint64_t bytes = bench::parse_bytes(text, "--value");
  if (bytes < pair_ledger::least_value || bytes > largest_value)
    throw error(fmt::format("--value {}: a value proves its key and version by its bytes", text),
                fmt::format("give {} bytes to 2M", pair_ledger::least_value));
  return bytes;
}

store_bench::pair_run_options run_options_of(const stores_options& given) {
  store_bench::pair_run_options o;
  const auto or_else = [](const std::string& text, const char* otherwise) { return text.empty() ? otherwise : text; };
  o.cases =
      store_bench::cases_of(store_bench::parse_pair_phases(or_else(given.phases, "load,ycsb-a,ycsb-c")),
                            store_bench::parse_pair_orders(or_else(given.patterns, "random")),
                            store_bench::list_of(given.values, value_size), depths_of(or_else(given.depths, "1")));
  read_run(given, o);
  o.records = bench::parse_count(given.keys, "--keys");
  o.key_bytes = bench::parse_bytes(given.key_bytes, "--key-bytes");
  if (o.key_bytes < pair_keys::least_bytes || o.key_bytes > pair_keys::most_bytes)
    throw error(fmt::format("--key-bytes {}: a key proves its place by its bytes", o.key_bytes),
                fmt::format("give {} to {}", pair_keys::least_bytes, pair_keys::most_bytes));
  if (o.records > pair_keys::most_ranks / 4 || store_bench::ranks_of(o) > pair_keys::most_ranks)
    throw error(fmt::format("--keys {} is too large", given.keys), "give fewer");
  // With fewer keys, threads would wait for each other's changes.
  for (const pair_case& c : o.cases)
    if (o.records < std::uint64_t{4} * c.depth * o.threads)
      throw error(
          fmt::format("{} keys are too few for {} by {} threads", o.records, store_bench::text_of(c), o.threads),
          "give more --keys, or less --depth or --threads");
    else if (c.value_bytes * c.depth * o.threads > most_data_bytes)
      throw error(fmt::format("{} by {} threads has more than 512 MiB under way", store_bench::text_of(c), o.threads),
                  "give less --depth, --value or --threads");
  return o;
}

// The bytes of all values of a run, with what stores add to them.
std::uint64_t bytes_of_records(const store_bench::pair_run_options& o) {
  constexpr std::uint64_t unit = 1024;
  constexpr std::uint64_t head = 64;
  std::uint64_t largest = 0;
  for (const pair_case& c : o.cases) largest = std::max<std::uint64_t>(largest, c.value_bytes);
  return store_bench::ranks_of(o) * ((largest + o.key_bytes + head + unit - 1) / unit * unit);
}

// Bytes; or "10%": of all records of the largest value.
std::uint64_t share_of_data(const std::string& text, const char* option, const pair_setup& s) {
  if (text == "0") return 0;
  if (!text.ends_with('%')) return bench::parse_bytes(text, option);
  const double share = bench::parse_factor(text.substr(0, text.size() - 1), option) / 100;
  if (!(share > 0 && share <= 100))
    throw error(fmt::format("{} {}", option, text), "give a size, or a share of the data from 1% to 10000%");
  return static_cast<std::uint64_t>(share * static_cast<double>(s.records * s.value_bytes));
}

pair_setup setup_of(const stores_options& given, const store_bench::pair_run_options& o) {
  pair_setup s;
  s.medium = bench::parse_medium(given.medium);
  s.overwrite = given.overwrite;
  s.records = o.records;
  s.value_bytes = 0;
  for (const pair_case& c : o.cases) s.value_bytes = std::max(s.value_bytes, c.value_bytes);
  s.cache_bytes = share_of_data(given.cache.empty() ? "0" : given.cache, "--cache", s);
  s.memory_bytes = share_of_data(given.memory, "--memory", s);
  s.loss_ms = given.loss_ms == "0" ? 0 : bench::parse_factor(given.loss_ms, "--loss-ms");
  if (!(s.loss_ms >= 0 && s.loss_ms <= most_loss_ms))
    throw error(fmt::format("--loss-ms {}", given.loss_ms), "give 0 to 3600000");
  s.log = on_or_off(given.log, "--log");
  s.place = given.place;
  if (given.memtable != "dram" && given.memtable != "pmem")
    throw error(fmt::format("there is no memtable '{}'", given.memtable), "choose dram or pmem");
  s.memtable = given.memtable;
  s.threads = o.threads;
  return s;
}

bool has_staging(const stores_options& given) { return !given.staging.empty() && given.staging != "none"; }

// An option that no store of the run has means that the user has another run in mind.
void check_stores(const std::vector<std::string>& names, const stores_options& given) {
  for (const std::string& name : names) {
    const store_bench::pair_store_description& d = store_bench::find_pair_store(name);
    if (has_staging(given) && !d.has_staging)
      throw error(fmt::format("{} has no use for a second drive", name),
                  "leave --staging out, or measure tiered or rocksdb");
    if (given.log == "off" && name != "rocksdb")
      throw error(fmt::format("{} cannot be without its log, or has none", name),
                  "leave --log off out, or measure rocksdb alone");
  }
  const auto none = [&](auto has) {
    return std::ranges::none_of(names, [&](const std::string& n) { return has(store_bench::find_pair_store(n)); });
  };
  if (given.memtable == "pmem" && none([](const auto& d) { return d.has_memtable; }))
    throw error("--memtable pmem without a store that has memtables", "measure tiered, or leave it out");
  if (!given.place.empty() && none([](const auto& d) { return d.has_staging; }))
    throw error("--place without a store that places its data", "measure tiered or rocksdb, or leave it out");
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

struct drive_sizes {
  std::uint64_t main = 0;
  std::uint64_t staging = 0;
};

drive_sizes sizes_of(const stores_options& given, const store_bench::pair_run_options& o, unsigned devices) {
  const auto blocks = [](std::uint64_t bytes) { return bytes / 4096 * 4096; };
  drive_sizes s;
  s.main = given.device_bytes.empty() ? blocks(2 * bytes_of_records(o) / devices + 128 * mebibyte)
                                      : bench::parse_bytes(given.device_bytes, "--device-bytes");
  s.staging = given.staging_bytes.empty() ? blocks(s.main / 4 + 64 * mebibyte)
                                          : bench::parse_bytes(given.staging_bytes, "--staging-bytes");
  return s;
}

pair_contestant contestant_of(const pair_setup& setup, const drive::device_spec& device,
                              const std::optional<drive::device_spec>& staging, const drive_sizes& bytes,
                              unsigned devices, bool alone, const store_bench::pair_run_options& o) {
  pair_contestant::makers make;
  make.devices = devices;
  make.device = [=, overwrite = setup.overwrite, store = setup.store](unsigned number) {
    const drive::device_spec own = device_of(device, store, alone);
    return store_bench::open_store_device(device_of(own, std::to_string(number), devices == 1),
                                          {.bytes = bytes.main, .overwrite = overwrite});
  };
  if (staging)
    make.staging = [=, spec = device_of(*staging, setup.store, alone), overwrite = setup.overwrite] {
      return store_bench::open_store_device(spec, {.bytes = bytes.staging, .overwrite = overwrite});
    };
  make.subject = [setup](const store_bench::pair_drives& on) { return store_bench::make_pair_subject(setup, on); };
  return {labels_of(setup, staging ? staging->text() : ""),
          std::move(make),
          store_bench::plan_of(o),
          store_bench::ranks_of(o),
          o.key_bytes,
          o.seed * 1000};
}

}  // namespace

int measure_pair_stores(const stores_options& given, const arguments& command_line) {
  const drive::device_spec device = drive::parse_device(given.device);
  std::optional<drive::device_spec> staging;
  if (has_staging(given)) staging = drive::parse_device(given.staging);
  store_bench::pair_run_options options = run_options_of(given);
  pair_setup setup = setup_of(given, options);
  const bool in_virtual_time = device.which == drive::device_spec::kind::simulated;
  const bool staging_in_virtual_time = staging && staging->which == drive::device_spec::kind::simulated;
  if (in_virtual_time || staging_in_virtual_time || setup.medium.simulated) hand_over(command_line);
  if (setup.medium.simulated && !in_virtual_time)
    throw error("memory in virtual time beside drive " + device.text(), "give --device simulated:p4610");
  if (staging && staging_in_virtual_time != in_virtual_time)
    throw error(fmt::format("drives {} and {} on different clocks", device.text(), staging->text()),
                "give both as emulated: or both as simulated:");
  const std::vector<std::string> names = stores_of(given, "kv_ssd,rocksdb");
  check_stores(names, given);
  const unsigned devices = count_up_to(given.devices, "--devices", most_devices);
  const drive_sizes bytes = sizes_of(given, options, devices);
  setup.medium_bytes = given.medium_bytes.empty()
                           ? least_pool + devices * 32 * mebibyte + store_bench::ranks_of(options) * 128
                           : bench::parse_bytes(given.medium_bytes, "--medium-bytes");
  if (in_virtual_time && given.seconds.empty()) options.seconds = virtual_seconds;
  if (!given.json.empty()) bench::check_writable(given.json);

  bench::progress shown(bench::progress::style_of_stderr(given.quiet));
  setup.emulation = calibration_of(setup.medium, shown);
  std::optional<bench::simulated_run> machine;
  if (in_virtual_time) machine.emplace(medium_of_machine(setup.medium), options.threads);
  std::vector<pair_contestant> stores;
  for (const std::string& name : names) {
    pair_setup own = setup;
    own.store = name;
    own.medium = medium_of(setup.medium, name, names.size() == 1);
    stores.push_back(contestant_of(own, device, staging, bytes, devices, names.size() == 1, options));
  }
  // What cannot be made is bad input: nothing was measured.
  store_bench::prepare_pair_stores(options, stores);

  const store_bench::real_run_clock clock;
  store_bench::pair_report report = store_bench::run_pair_cases(options, stores, clock, shown);
  shown.clear();
  const std::string scale = stores.front().main().front()->scale();
  const std::string way = stores.front().main().front()->way();
  stores.clear();
  machine.reset();
  remark_shared_cpus(report, options.threads, in_virtual_time);
  return show_results(given, report, names.back(), [&] {
    const store_bench::pair_run_record record{
        {shell_form(command_line), device.text(), setup.medium.text(), bytes.main, names, scale, way},
        staging ? staging->text() : "",
        bytes.staging,
        devices,
        setup};
    return store_bench::results_to_json(options, record, bench::facts_of_this_machine(), clock, report);
  });
}

}  // namespace pmlab::cli
