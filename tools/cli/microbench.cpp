// `pmlab microbench`: measures a memory or a block device, and shows the figures.
#include "tools/cli/command.hpp"
#include "tools/cli/drive_run.hpp"
#include "tools/cli/memory_options.hpp"
#include "tools/cli/outputs.hpp"
#include "tools/cli/simulated_program.hpp"
#include <pmlab/base/error.hpp>
#include "bench/support/machine.hpp"
#include "bench/support/quantity.hpp"
#include "bench/support/shell_form.hpp"
#include "bench/support/thread_team.hpp"
#include "microbench/memory/engine.hpp"
#include "microbench/memory/prefetchers.hpp"
#include "microbench/memory/results_json.hpp"
#include "microbench/memory/suite.hpp"
#include "microbench/memory/table.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pmlab::cli {
namespace {

struct request {
  memory_request memory;
  std::vector<unsigned> threads;  // empty: the suite's
  std::optional<bool> prefetchers;
  std::optional<double> spread_percent;
  std::string suite, filter, json;
  drive_request drive;
  bool list = false;
};

// Throws pmlab::error for an option that was given, but not its partner; or that was given beside what it has no part
// in.
void refuse_options_of_the_other_target(const CLI::App& app) {
  const auto is_given = [&app](const char* option) { return app.get_option(option)->count() > 0; };
  const bool has_device = is_given("--device");
  for (const char* const option :
       {"--medium", "--threads", "--prefetchers", "--layouts", "--emulation-scale", "--huge-pages"})
    if (has_device && is_given(option))
      throw error(fmt::format("{} is about a memory, and --device is measured", option), "leave one of them out");
  if (has_device && is_given("--reuse"))
    throw error("--reuse is about a pool, and --device is measured", "leave it out, or give --overwrite");
  for (const char* const option : {"--device-bytes", "--fio", "--settle"})
    if (!has_device && is_given(option))
      throw error(fmt::format("{} needs --device", option), "name one, for example --device memory");
}

drive_request drive_of(const request& asked) {
  drive_request d = asked.drive;
  if (!asked.suite.empty()) d.suite = asked.suite;
  d.filter = asked.filter;
  d.json = asked.json;
  d.spread_percent = asked.spread_percent;
  d.list = asked.list;
  d.overwrite = asked.memory.options.overwrite;
  d.quiet = asked.memory.quiet;
  return d;
}

struct plan {
  microbench::run_options options;
  microbench::suite suite;
};

// Throws pmlab::error.
plan plan_of(const request& asked) {
  check(asked.memory.options);
  if (asked.suite == "drive") throw error("suite drive needs --device", "name one, for example --device file:PATH");
  plan p{asked.memory.options,
         microbench::load_suite(asked.suite.empty() ? "quick" : asked.suite, {.threads = asked.threads})};
  if (asked.spread_percent) p.options.spread_percent = *asked.spread_percent;
  if (p.options.layouts > 1 && !p.options.medium.simulated)
    throw error("--layouts is of a simulated memory, and this is " + p.options.medium.text(),
                "leave it out, or use a simulated medium");
  if (p.options.emulation_scale > 0 && !p.options.medium.emulated())
    throw error("--emulation-scale needs an emulated medium", "leave it out, or use --medium emulated:PROFILE");
  if (!asked.filter.empty()) microbench::filter_cases(p.suite, asked.filter);
  check_outputs({{"--json", asked.json}});
  return p;
}

microbench::suite_report run(const plan& p, const request& asked) {
  bench::progress shown(bench::progress::style_of_stderr(asked.memory.quiet));
  // Simulated cores have none to switch.
  std::optional<microbench::prefetchers> switches;
  std::string state = "none";
  if (!p.options.medium.simulated) {
    switches.emplace(bench::usable_cpus());
    if (!asked.prefetchers.value_or(true)) switches->switch_off();
    state = switches->state();
  }
  microbench::suite_report report = microbench::run_suite(p.options, p.suite, shown);
  report.prefetchers = state;
  if (std::string doubt = doubt_about_simulation(); p.options.medium.simulated && !doubt.empty())
    report.remarks.push_back(std::move(doubt));
  return report;
}

int measure(const request& asked, const arguments& command_line) {
  const plan p = plan_of(asked);
  if (asked.list) {
    fmt::print("{}", microbench::list_of_cases(p.suite));
    return success;
  }
  if (p.options.medium.simulated) hand_over(command_line);
  const microbench::suite_report report = run(p, asked);
  const microbench::run_record record{shell_form(command_line),
                                      asked.filter.empty() ? std::nullopt : std::optional(asked.filter)};
  return write({.files = {{asked.json,
                           [&] {
                             return text_of(microbench::results_to_json(
                                 p.options, record, bench::facts_of_this_machine(), p.suite, report));
                           }}},
                .table = report.results.empty() ? "" : microbench::results_table(p.options, p.suite, report),
                .failure = report.failure});
}

}  // namespace

command add_microbench(CLI::App& program, const arguments& command_line) {
  CLI::App* const app =
      program.add_subcommand("microbench", "Measures a memory or a block device: latency, bandwidth, granularity");
  const auto asked = std::make_shared<request>();
  const auto text = texts_of(*app);
  const auto parsed = parsed_texts_of(*app);
  microbench::run_options& memory = asked->memory.options;
  add_options_of_memory(*app, asked->memory);
  parsed("--device", "",
         "file:PATH | emulated:PROFILE | simulated:PROFILE | memory: "
         "measure a block device in place of a memory (docs/blocks.md)",
         asked->drive.device, drive::parse_device);
  parsed("--device-bytes", "",
         "SIZE of a new device; at most so many bytes of an existing one are used; 256M if not given, 2G if it is "
         "modelled",
         asked->drive.bytes, bench::parse_bytes);
  parsed("--fio", "", "on | off: beside a file device, measure fio; on if fio is installed", asked->drive.fio,
         on_or_off);
  parsed("--settle", "",
         "SECONDS: most time of writes before each case of writes, until the rate is steady; 0 if not given "
         "(a modelled drive is steady)",
         asked->drive.settle_seconds, bench::parse_seconds_or_none);
  text("--suite", asked->suite,
       "quick | paper | full | FILE.toml: the cases to measure; default: quick; "
       "for a device: quick | drive | full; default: drive");
  text("--filter", asked->filter, "REGEX: only cases whose name has a match");
  app->add_flag("--list", asked->list, "Show the cases and measure nothing");
  parsed("--threads", "", "N[,N...] or N-M: in place of the suite's numbers of threads (mixes keep theirs)",
         asked->threads, numbers_of);
  constexpr std::uint64_t most_layouts = 1000;
  parsed("--layouts", "1", "N: of a simulated memory: measure each case on so many; docs/experiments.md",
         asked->memory.options.layouts, up_to(most_layouts));
  parsed("--spread", "", "PERCENT: repeat until repetitions agree so well; 5 if not given, 10 for a device",
         asked->spread_percent, bench::parse_factor);
  parsed("--prefetchers", "", "off: switch the CPU's prefetchers off for the run (root); on: leave them",
         asked->prefetchers, on_or_off);
  parsed("--huge-pages", "on", "on | off", memory.huge_pages, on_or_off);
  parsed("--emulation-scale", "", "X: play the device X times slower; as much as this machine needs if not given",
         memory.emulation_scale, bench::parse_emulation_scale);
  text("--json", asked->json, "FILE: write all results there (docs/microbench.md); -: to standard output");
  app->footer(
      "Status: 0 measured; 1 the run ended early; 2 bad input.\n\n"
      "  pmlab microbench --medium simulated:aep --suite paper --json aep.json\n"
      "  pmlab microbench --medium pmem:/mnt/pmem/test.pool --suite full --prefetchers off --json optane.json\n"
      "  pmlab microbench --device file:/mnt/nvme/test --suite drive --json nvme.json\n"
      "  pmlab microbench --suite mine.toml --filter 'read-latency/.*access_bytes=256' --list");
  return {app, [asked, command_line, app] {
            refuse_options_of_the_other_target(*app);
            if (app->get_option("--device")->count() > 0) return measure_drive(drive_of(*asked), command_line);
            return measure(*asked, command_line);
          }};
}

}  // namespace pmlab::cli
