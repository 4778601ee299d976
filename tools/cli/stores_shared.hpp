// What the runs of `pmlab stores volumes` and `pmlab stores pairs` share.
#pragma once

#include "tools/cli/outputs.hpp"
#include "tools/cli/simulated_program.hpp"
#include "tools/cli/stores_request.hpp"
#include <pmlab/base/error.hpp>
#include "bench/devices/calibration.hpp"
#include "bench/devices/profile_file.hpp"
#include "bench/engine/simulated_run.hpp"
#include "bench/stores/store_device.hpp"
#include "bench/stores/table.hpp"
#include "bench/support/progress.hpp"
#include "bench/support/thread_team.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace pmlab::cli {

inline constexpr std::uint64_t least_pool = std::uint64_t{64} << 20;
inline constexpr std::uint64_t most_data_bytes = std::uint64_t{512} << 20;

// Throws pmlab::error for what no store can be measured with.
inline void check_stores_request(const stores_request& asked, const std::string& example) {
  if (asked.stores.empty()) throw error("nothing to measure", "name a store: --store " + example);
  if (asked.medium.simulated && !asked.in_virtual_time())
    throw error("memory in virtual time beside drive " + asked.device.text(), "give --device simulated:p4610");
  check_outputs({{"--json", asked.json}});
}

// Lengths of cases, as they were asked for. A case in virtual time repeats to the digit: it needs no long time.
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

template <class Report>
struct outcome {
  Report report;
  std::string scale, way;  // the drives have them
};

// Measures on a machine in virtual time, if one was asked for; an emulated medium of `setup` is calibrated first. make():
// the stores, as new; measure(stores, progress): their report. Throws pmlab::error: nothing can be measured.
template <class Setup, class Make, class Measure>
[[nodiscard]] auto run_stores(const stores_request& asked, Setup& setup, Make&& make, Measure&& measure) {
  bench::progress shown(bench::progress::style_of_stderr(asked.quiet));
  setup.emulation = calibration_of(setup.medium, shown);
  std::optional<bench::simulated_run> machine;
  if (asked.in_virtual_time())
    machine.emplace(medium_of_machine(setup.medium), bench::simulated_run::options{.threads = asked.lengths.threads});
  // They go before the machine that they run on.
  auto stores = make();
  outcome<decltype(measure(stores, shown))> done{measure(stores, shown), {}, {}};
  shown.clear();
  const store_bench::store_device& drive = *stores.front().drives().main().front();
  done.scale = drive.scale();
  done.way = drive.way();
  return done;
}

template <class Result>
void remark_shared_cpus(store_bench::report_of<Result>& report, const stores_request& asked) {
  const unsigned threads = asked.lengths.threads;
  if (const std::size_t cpus = bench::usable_cpus().size(); threads > cpus && !asked.in_virtual_time())
    report.remarks.push_back(fmt::format("{} threads shared {} CPUs", threads, cpus));
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
