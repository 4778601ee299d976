// What the runs of `pmlab stores volumes` and `pmlab stores pairs` share.
#pragma once

#include "tools/cli/outputs.hpp"
#include "tools/cli/simulated_program.hpp"
#include "tools/cli/stores_request.hpp"
#include <pmlab/base/error.hpp>
#include "bench/devices/calibration.hpp"
#include "bench/devices/profile_file.hpp"
#include "bench/engine/process_of_its_own.hpp"
#include "bench/engine/simulated_run.hpp"
#include "bench/stores/report_bytes.hpp"
#include "bench/stores/store_device.hpp"
#include "bench/stores/subjects.hpp"
#include "bench/stores/table.hpp"
#include "bench/support/progress.hpp"
#include "bench/support/thread_team.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace pmlab::cli {

inline constexpr std::uint64_t least_pool = std::uint64_t{64} << 20;
inline constexpr std::uint64_t most_data_bytes = std::uint64_t{512} << 20;

// No store of the run has it: has(find(its name)).
template <class Find, class Has>
[[nodiscard]] bool no_store_has(const stores_request& asked, Find&& find, Has&& has) {
  return std::ranges::none_of(asked.stores, [&](const std::string& name) { return has(find(name)); });
}

// Throws pmlab::error for what no store can be measured with.
inline void check_stores_request(const stores_request& asked, const std::string& example) {
  if (asked.stores.empty()) throw error("nothing to measure", "name a store: --store " + example);
  if (asked.medium.simulated && !asked.in_virtual_time())
    throw error("memory in virtual time beside drive " + asked.device.text(), "give --device simulated:p4610");
  if (asked.lengths.layout != 1 && !asked.in_virtual_time())
    throw error("--layout is of virtual time, and drive " + asked.device.text() + " is on a real clock",
                "leave it out, or give --device simulated:p4610");
  if (asked.pool_bytes && !asked.medium.in_pool() && !asked.medium.simulated)
    throw error("--pool-size without a pool: " + asked.medium.text() + " has none",
                "leave it out, or give --medium pmem:PATH");
  check_outputs({{"--json", asked.json}});
}

// Lengths of cases, as they were asked for. A case in virtual time is simulated operation by operation: it is short.
[[nodiscard]] inline store_bench::run_lengths lengths_of(const stores_request& asked) {
  constexpr double virtual_seconds = 0.1;
  store_bench::run_lengths lengths = asked.lengths;
  if (asked.in_virtual_time() && !asked.has_seconds) lengths.seconds = virtual_seconds;
  return lengths;
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

// The report of these stores, with the texts of their drives. measure(stores, progress) returns the former.
template <class Contestant, class Measure>
[[nodiscard]] auto outcome_of_stores(std::vector<Contestant> stores, bench::progress& shown, Measure&& measure) {
  store_bench::outcome<decltype(measure(stores, shown))> done{measure(stores, shown), {}, {}};
  const store_bench::store_device& drive = *stores.front().drives().main().front();
  done.scale = drive.scale();
  done.way = drive.way();
  return done;
}

// The options of one repetition in virtual time: its layout draws the seeds, too.
template <class Options>
[[nodiscard]] Options of_repetition(const Options& all, unsigned repetition) {
  constexpr std::uint64_t seeds_of_a_layout = std::uint64_t{1} << 32;
  Options one = all;
  one.layout += repetition - 1;
  one.seed += (one.layout - 1) * seeds_of_a_layout;
  one.repetitions = 1;
  return one;
}

// Measures in virtual time: each store in each repetition on a machine of its own, in a process of its own. So its
// figures depend neither on other stores nor on repetitions before. `measure` as in run_stores. An error in the middle
// ends the run.
template <class Options, class Measure>
[[nodiscard]] auto run_simulated(const stores_request& asked, const bench::medium_spec& medium, const Options& options,
                                 bench::progress& shown, Measure&& measure) {
  decltype(measure(options, asked.stores, shown)) all{};
  for (unsigned repetition = 1; repetition <= options.repetitions; ++repetition) {
    const Options one = of_repetition(options, repetition);
    for (const std::string& store : asked.stores) {
      shown.pass(fmt::format("layout {}, {}", one.layout, store));
      const std::string bytes = bench::in_process_of_its_own(
          "the simulated machine of " + store, "give a smaller --volume-bytes or fewer --records, if memory was short",
          [&] {
            store_bench::load_library_of(store);
            const bench::simulated_run machine(
                medium_of_machine(medium),
                {.threads = one.threads, .layout = one.layout - 1, .program_is_simulated = true});
            return store_bench::bytes_of(measure(one, {store}, shown));
          });
      auto done = store_bench::outcome_of(bytes, options);
      for (auto& r : done.report.results) r.repetition = repetition;
      all.report.add(std::move(done.report));
      all.scale = done.scale;
      all.way = done.way;
      if (all.report.failure) return all;
    }
  }
  return all;
}

// Measures the stores that were asked for; in virtual time, if the drive has it. An emulated medium of the plan's setup
// is calibrated first. measure(options, names, progress): the outcome of these stores, which end before it returns.
// Throws pmlab::error: nothing can be measured.
template <class Plan, class Measure>
[[nodiscard]] auto run_stores(const stores_request& asked, Plan& p, Measure&& measure) {
  bench::progress shown(bench::progress::style_of_stderr(asked.quiet));
  p.setup.emulation = calibration_of(p.setup.medium, shown);
  auto done = asked.in_virtual_time() ? run_simulated(asked, p.setup.medium, p.options, shown, measure)
                                      : measure(p.options, asked.stores, shown);
  shown.clear();
  return done;
}

template <class Result>
void remark_shared_cpus(store_bench::report_of<Result>& report, const stores_request& asked) {
  const unsigned threads = asked.lengths.threads;
  if (const std::size_t cpus = bench::usable_cpus().size(); threads > cpus && !asked.in_virtual_time())
    report.remarks.push_back(fmt::format("{} threads shared {} CPUs", threads, cpus));
}

// A medium that nothing of the run is in. Experiments give one to all stores, so the run goes on.
template <class Result>
void remark_unused_medium(store_bench::report_of<Result>& report, const stores_request& asked) {
  const auto has_medium = [](const Result& r) { return !r.of.medium.empty(); };
  if (report.results.empty() || asked.medium.plain_dram() || asked.medium.simulated) return;
  if (std::ranges::none_of(report.results, has_medium))
    report.remarks.push_back(
        fmt::format("--medium {} was not used: no store of this run has data there", asked.medium.text()));
}

// to_json(): the document. Others are compared with the last store. Returns the exit status.
template <class Result, class ToJson>
[[nodiscard]] int write_report(const stores_request& asked, const store_bench::report_of<Result>& report,
                               ToJson&& to_json) {
  return write({.files = {{asked.json, [&] { return text_of(to_json()); }}},
                .table = report.results.empty() ? "" : store_bench::results_table(report, asked.stores.back()),
                .first_wrong = report.first_wrong,
                .wrong_answers = report.wrong_answers(),
                .failure = report.failure});
}

}  // namespace pmlab::cli
