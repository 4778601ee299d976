// `pmlab stores bench`: measures stores, and shows the figures.
#include "tools/bench/results_json.hpp"
#include "tools/bench/simulated_run.hpp"
#include "tools/cli/simulated_program.hpp"
#include "tools/cli/stores_run.hpp"
#include "tools/devices/calibration.hpp"
#include "tools/devices/device_spec.hpp"
#include "tools/devices/profile_file.hpp"
#include "tools/stores/engine.hpp"
#include "tools/stores/results_json.hpp"
#include "tools/stores/subjects.hpp"
#include "tools/stores/table.hpp"
#include "tools/support/machine.hpp"
#include "tools/support/quantity.hpp"
#include "tools/support/shell_form.hpp"
#include "tools/support/thread_team.hpp"
#include <pmlab/base/error.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace pmlab::cli {
namespace {

using store_bench::bench_case;
using store_bench::contestant;

constexpr std::uint64_t default_volume = std::uint64_t{256} << 20;
constexpr std::uint64_t least_pool = std::uint64_t{64} << 20;
// Room for redirected writes, and for the areas of peers. A merge by copy keeps the base extent of each chunk beside them.
constexpr std::uint64_t spare_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t block = 4096;
// A case repeats to the digit: it needs no long time.
constexpr double virtual_seconds = 0.1;
constexpr std::uint64_t largest_operation = std::uint64_t{4} << 20;
constexpr std::uint64_t most_data_bytes = std::uint64_t{512} << 20;

template <class Parse>
auto list_of(const std::string& list, Parse&& parse) {
  std::vector<decltype(parse(list))> values;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    values.push_back(parse(list.substr(start, end - start)));
    start = end + 1;
  }
  return values;
}

std::uint32_t count_up_to(const std::string& text, const std::string& option, std::uint64_t most) {
  const std::uint64_t count = bench::parse_count(text, option);
  if (count > most)
    throw error(fmt::format("{} '{}' is too large", option, text), fmt::format("give at most {}", most));
  return static_cast<std::uint32_t>(count);
}

std::uint64_t operation_size(const std::string& text) {
  const std::uint64_t bytes = bench::parse_bytes(text, "--size");
  if (bytes == 0 || bytes % block != 0 || bytes > largest_operation)
    throw error(fmt::format("--size {}: an operation is of whole blocks of 4096 bytes, at most 4M", text),
                "give a multiple of 4K");
  return bytes;
}

store_bench::run_options run_options_of(const stores_options& given, std::uint64_t volume_bytes) {
  store_bench::run_options o;
  const auto sizes = list_of(given.sizes, operation_size);
  constexpr std::uint64_t most_depth = 1024;
  const auto depths = list_of(given.depths, [](const std::string& d) { return count_up_to(d, "--depth", most_depth); });
  o.cases = store_bench::cases_of(store_bench::parse_phases(given.phases), store_bench::parse_orders(given.patterns),
                                  sizes, std::vector<unsigned>(depths.begin(), depths.end()));
  constexpr std::uint64_t most_threads = 127;
  o.threads = count_up_to(given.threads, "--threads", most_threads);
  if (!given.operations.empty()) o.operations = bench::parse_count(given.operations, "--operations");
  if (!given.seconds.empty()) o.seconds = bench::parse_seconds(given.seconds, "--seconds");
  constexpr std::uint64_t most_repetitions = 1000;
  o.repetitions = count_up_to(given.repetitions, "--repetitions", most_repetitions);
  o.seed = bench::parse_count(given.seed, "--seed", 0);
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
  return !given.merge.empty() ? given.merge : given.container == "blocks" ? "copy" : "remap";
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
  return {s.store, s.container, s.medium.text(), s.index, s.merge, s.ring};
}

// Of a run in virtual time: a drive alone has no other memory than DRAM.
bench::medium_spec medium_of_machine(bench::medium_spec medium) {
  if (!medium.simulated) medium.profile = bench::simulated_run::dram_profile;
  medium.simulated = true;
  return medium;
}

// A file for each store: the path itself if it is alone.
drive::device_spec device_of(const drive::device_spec& given, const std::string& store, bool alone) {
  drive::device_spec own = given;
  if (own.which == drive::device_spec::kind::file && !alone) own.path += "." + store;
  return own;
}

}  // namespace

int measure_stores(const stores_options& given, const arguments& command_line) {
  if (given.kind != "block")
    throw error(fmt::format("there is no kind of stores '{}'", given.kind), "give --kind block");
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
  std::vector<std::string> names;
  for (const std::string& list : given.stores)
    for (std::string& name : list_of(list, [](const std::string& n) { return n; })) names.push_back(std::move(name));
  if (names.empty()) throw error("nothing to measure", "name a store: --store chunk_store,raw");
  for (const std::string& name : names) {
    if (std::ranges::count(names, name) > 1)
      throw error(fmt::format("--store names {} twice", name), "name it once, and give --repetitions");
    setup.store = name;
    store_bench::check_setup(setup, device_bytes);
  }
  store_bench::run_options options = run_options_of(given, volume_bytes);
  if (in_virtual_time && given.seconds.empty()) options.seconds = virtual_seconds;
  if (!given.json.empty()) bench::check_writable(given.json);

  bench::progress shown(bench::progress::style_of_stderr(given.quiet));
  if (setup.medium.emulated()) {
    shown.pass("calibrating " + setup.medium.text());
    // At the drive's own speed: a medium that is played slower would be compared with a drive that is not.
    setup.emulation = std::make_shared<const media::calibration>(
        media::calibrate(media::load_profile(setup.medium.profile), {.scale = 1}));
  }
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
  if (const std::size_t cpus = bench::usable_cpus().size(); options.threads > cpus && !in_virtual_time)
    report.remarks.push_back(fmt::format("{} threads shared {} CPUs", options.threads, cpus));
  if (!given.json.empty()) {
    const store_bench::run_record record{shell_form(command_line),
                                         device.text(),
                                         setup.medium.text(),
                                         device_bytes,
                                         volume_bytes,
                                         setup.chunk_bytes,
                                         names,
                                         scale,
                                         way};
    bench::write_json(given.json,
                      store_bench::results_to_json(options, record, bench::facts_of_this_machine(), clock, report));
  }
  if (!report.results.empty())
    fmt::print(bench::table_beside(given.json), "{}", store_bench::results_table(report, names.back()));
  std::fflush(stdout);
  for (const std::string& wrong : report.first_wrong) fmt::print(stderr, "pmlab: wrong answer: {}\n", wrong);
  if (report.wrong_answers() > 0)
    fmt::print(stderr, "pmlab: error: {} wrong answers; do not trust these figures\n", report.wrong_answers());
  if (report.failure) fmt::print(stderr, "pmlab: error: {}\n", *report.failure);
  return report.failure || report.wrong_answers() > 0 ? failure : success;
}

}  // namespace pmlab::cli
