// `pmlab microbench --device`: measures a block device, and shows the figures.
#include "tools/cli/drive_run.hpp"
#include <pmlab/base/error.hpp>
#include "bench/engine/results_json.hpp"
#include "bench/support/machine.hpp"
#include "bench/support/optional_packages.hpp"
#include "bench/support/quantity.hpp"
#include "bench/support/shell_form.hpp"
#include "microbench/drive/engine.hpp"
#include "microbench/drive/fio.hpp"
#include "microbench/drive/results_json.hpp"
#include "microbench/drive/table.hpp"

#include <cstdio>
#include <memory>
#include <optional>

#include <fmt/format.h>

namespace pmlab::cli {
namespace {

// Bytes of the device if --size is not given. A modelled drive takes no space: it has enough for its ratios.
constexpr std::uint64_t default_bytes = std::uint64_t{256} << 20;
constexpr std::uint64_t default_model_bytes = std::uint64_t{2} << 30;

// fio reads and writes files only, and is optional unless it was asked for.
std::optional<std::string> chosen_fio(const drive_options& given, const drive::device_spec& device) {
  const bool wanted = !given.fio.empty() && on_or_off(given.fio, "--fio");
  if (!given.fio.empty() && !wanted) return std::nullopt;
  if (device.which != drive::device_spec::kind::file) {
    if (wanted) throw error("--fio on needs a file or block device", "leave it out, or give --device file:PATH");
    return std::nullopt;
  }
  std::optional<std::string> found = bench::path_of_program("fio");
  if (wanted && !found) throw error("fio is not installed", "install package fio, or leave --fio out");
  return found;
}

}  // namespace

int measure_drive(const drive_options& given, const arguments& command_line) {
  drive::run_options options;
  options.device = drive::parse_device(given.device);
  options.bytes = options.device.modelled() ? default_model_bytes : default_bytes;
  if (!given.size.empty()) options.bytes = bench::parse_bytes(given.size, "--size");
  options.overwrite = given.overwrite;
  if (!given.spread.empty()) options.spread_percent = bench::parse_factor(given.spread, "--spread");
  options.fio = chosen_fio(given, options.device);
  drive::suite suite = drive::suite_of(given.suite);
  if (!given.filter.empty()) drive::filter_cases(suite, given.filter);
  if (given.list) {
    fmt::print("{}", drive::list_of_cases(suite));
    return success;
  }
  if (!given.json.empty()) bench::check_writable(given.json);

  const std::unique_ptr<drive::target> on =
      drive::open_target(options.device, {.bytes = options.bytes, .overwrite = options.overwrite});
  bench::progress shown(bench::progress::style_of_stderr(given.quiet));
  const drive::suite_report report = drive::run_suite(options, suite, *on, shown);
  shown.clear();
  if (!given.json.empty()) {
    const drive::run_record record{shell_form(command_line),
                                   given.filter.empty() ? std::nullopt : std::optional(given.filter)};
    bench::write_json(given.json,
                      drive::results_to_json(options, record, bench::facts_of_this_machine(), suite, *on, report));
  }
  if (!report.results.empty())
    fmt::print(bench::table_beside(given.json), "{}", drive::results_table(options, suite, *on, report));
  std::fflush(stdout);
  if (report.failure) fmt::print(stderr, "pmlab: error: {}\n", *report.failure);
  return report.failure ? failure : success;
}

}  // namespace pmlab::cli
