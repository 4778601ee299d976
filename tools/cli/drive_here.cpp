// `pmlab microbench --device`: measures a block device, and shows the figures.
#include "tools/cli/drive_run.hpp"
#include "tools/cli/outputs.hpp"
#include <pmlab/base/error.hpp>
#include "bench/support/machine.hpp"
#include "bench/support/optional_packages.hpp"
#include "bench/support/shell_form.hpp"
#include "microbench/drive/engine.hpp"
#include "microbench/drive/fio.hpp"
#include "microbench/drive/results_json.hpp"
#include "microbench/drive/table.hpp"

#include <memory>
#include <optional>

#include <fmt/format.h>

namespace pmlab::cli {
namespace {

// Bytes of the device if --size is not given. A modelled drive takes no space: it has enough for its ratios.
constexpr std::uint64_t default_bytes = std::uint64_t{256} << 20;
constexpr std::uint64_t default_model_bytes = std::uint64_t{2} << 30;

// fio reads and writes files only, and is optional unless it was asked for.
std::optional<std::string> chosen_fio(const drive_request& asked) {
  const bool wanted = asked.fio.value_or(false);
  if (asked.fio && !wanted) return std::nullopt;
  if (asked.device.which != drive::device_spec::kind::file) {
    if (wanted) throw error("--fio on needs a file or block device", "leave it out, or give --device file:PATH");
    return std::nullopt;
  }
  std::optional<std::string> found = bench::path_of_program("fio");
  if (wanted && !found) throw error("fio is not installed", "install package fio, or leave --fio out");
  return found;
}

struct plan {
  drive::run_options options;
  drive::suite suite;
};

// Throws pmlab::error.
plan plan_of(const drive_request& asked) {
  plan p;
  p.options.device = asked.device;
  p.options.bytes = asked.bytes.value_or(asked.device.modelled() ? default_model_bytes : default_bytes);
  p.options.overwrite = asked.overwrite;
  if (asked.spread_percent) p.options.spread_percent = *asked.spread_percent;
  p.options.settle_seconds = asked.settle_seconds;
  p.options.fio = chosen_fio(asked);
  p.suite = drive::suite_of(asked.suite);
  if (!asked.filter.empty()) drive::filter_cases(p.suite, asked.filter);
  check_outputs({{"--json", asked.json}});
  return p;
}

}  // namespace

int measure_drive(const drive_request& asked, const arguments& command_line) {
  const plan p = plan_of(asked);
  if (asked.list) {
    fmt::print("{}", drive::list_of_cases(p.suite));
    return success;
  }
  const std::unique_ptr<drive::target> on =
      drive::open_target(p.options.device, {.bytes = p.options.bytes, .overwrite = p.options.overwrite});
  bench::progress shown(bench::progress::style_of_stderr(asked.quiet));
  const drive::suite_report report = drive::run_suite(p.options, p.suite, *on, shown);
  shown.clear();
  const drive::run_record record{shell_form(command_line),
                                 asked.filter.empty() ? std::nullopt : std::optional(asked.filter)};
  return write({.files = {{asked.json,
                           [&] {
                             return text_of(drive::results_to_json(p.options, record, bench::facts_of_this_machine(),
                                                                   p.suite, *on, report));
                           }}},
                .table = report.results.empty() ? "" : drive::results_table(p.options, p.suite, *on, report),
                .failure = report.failure});
}

}  // namespace pmlab::cli
