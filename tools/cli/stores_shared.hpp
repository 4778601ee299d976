// `pmlab stores bench`: what runs of stores of blocks and of key-value stores share.
#pragma once

#include "tools/cli/command.hpp"
#include "tools/cli/stores_run.hpp"
#include <pmlab/base/error.hpp>
#include "bench/catalogue/medium_spec.hpp"
#include "bench/devices/calibration.hpp"
#include "bench/devices/device_spec.hpp"
#include "bench/devices/profile_file.hpp"
#include "bench/engine/results_json.hpp"
#include "bench/engine/simulated_run.hpp"
#include "bench/stores/lists.hpp"
#include "bench/stores/measured.hpp"
#include "bench/stores/table.hpp"
#include "bench/support/progress.hpp"
#include "bench/support/quantity.hpp"
#include "bench/support/thread_team.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace pmlab::cli {

inline constexpr std::uint64_t least_pool = std::uint64_t{64} << 20;
// A case in virtual time repeats to the digit: it needs no long time.
inline constexpr double virtual_seconds = 0.1;
inline constexpr std::uint64_t most_depth = 1024;
inline constexpr std::uint64_t most_threads = 127;
inline constexpr std::uint64_t most_repetitions = 1000;
inline constexpr std::uint64_t most_data_bytes = std::uint64_t{512} << 20;

[[nodiscard]] inline std::uint32_t count_up_to(const std::string& text, const std::string& option, std::uint64_t most) {
  const std::uint64_t count = bench::parse_count(text, option);
  if (count > most)
    throw error(fmt::format("{} '{}' is too large", option, text), fmt::format("give at most {}", most));
  return static_cast<std::uint32_t>(count);
}

[[nodiscard]] inline std::vector<unsigned> depths_of(const std::string& list) {
  return store_bench::list_of(list,
                              [](const std::string& d) { return unsigned{count_up_to(d, "--depth", most_depth)}; });
}

// Reads what runs of each kind have.
inline void read_run(const stores_options& given, store_bench::run_lengths& o) {
  o.threads = count_up_to(given.threads, "--threads", most_threads);
  if (!given.operations.empty()) o.operations = bench::parse_count(given.operations, "--operations");
  if (!given.seconds.empty()) o.seconds = bench::parse_seconds(given.seconds, "--seconds");
  o.repetitions = count_up_to(given.repetitions, "--repetitions", most_repetitions);
  o.seed = bench::parse_count(given.seed, "--seed", 0);
}

// The names that --store gives. `example`: a list of some.
[[nodiscard]] inline std::vector<std::string> stores_of(const stores_options& given, const std::string& example) {
  std::vector<std::string> names;
  for (const std::string& list : given.stores)
    for (std::string& name : store_bench::words_of(list)) names.push_back(std::move(name));
  if (names.empty()) throw error("nothing to measure", "name a store: --store " + example);
  for (const std::string& name : names)
    if (std::ranges::count(names, name) > 1)
      throw error(fmt::format("--store names {} twice", name), "name it once, and give --repetitions");
  return names;
}

// The medium of a run in virtual time: a drive alone has no other memory than DRAM.
[[nodiscard]] inline bench::medium_spec medium_of_machine(bench::medium_spec medium) {
  if (!medium.simulated) medium.profile = bench::simulated_run::dram_profile;
  medium.simulated = true;
  return medium;
}

// At the drive's own speed: a medium that is played slower would be compared with a drive that is not.
[[nodiscard]] inline std::shared_ptr<const media::calibration> calibration_of(const bench::medium_spec& medium,
                                                                              bench::progress& shown) {
  if (!medium.emulated()) return nullptr;
  shown.pass("calibrating " + medium.text());
  return std::make_shared<const media::calibration>(
      media::calibrate(media::load_profile(medium.profile), {.scale = 1}));
}

// A file for each: the path itself if it is alone.
[[nodiscard]] inline drive::device_spec device_of(const drive::device_spec& given, const std::string& name,
                                                  bool alone) {
  drive::device_spec own = given;
  if (own.which == drive::device_spec::kind::file && !alone) own.path += "." + name;
  return own;
}

template <class Result>
void remark_shared_cpus(store_bench::report_of<Result>& report, unsigned threads, bool in_virtual_time) {
  if (const std::size_t cpus = bench::usable_cpus().size(); threads > cpus && !in_virtual_time)
    report.remarks.push_back(fmt::format("{} threads shared {} CPUs", threads, cpus));
}

// The end of a run: results as JSON, if they are wanted, the table, and failures. to_json(): the document. `baseline`:
// the store that others are compared with. Returns the exit status.
template <class Result, class ToJson>
[[nodiscard]] int show_results(const stores_options& given, const store_bench::report_of<Result>& report,
                               const std::string& baseline, ToJson&& to_json) {
  if (!given.json.empty()) bench::write_json(given.json, to_json());
  if (!report.results.empty())
    fmt::print(bench::table_beside(given.json), "{}", store_bench::results_table(report, baseline));
  std::fflush(stdout);
  for (const std::string& wrong : report.first_wrong) fmt::print(stderr, "pmlab: wrong answer: {}\n", wrong);
  if (report.wrong_answers() > 0)
    fmt::print(stderr, "pmlab: error: {} wrong answers; do not trust these figures\n", report.wrong_answers());
  if (report.failure) fmt::print(stderr, "pmlab: error: {}\n", *report.failure);
  return report.failure || report.wrong_answers() > 0 ? failure : success;
}

}  // namespace pmlab::cli
