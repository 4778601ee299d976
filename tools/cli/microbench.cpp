// `pmlab microbench`: measures a memory or a block device, and shows the figures.
#include "tools/cli/command.hpp"
#include "tools/cli/drive_run.hpp"
#include "tools/cli/memory_options.hpp"
#include "tools/cli/simulated_program.hpp"
#include <pmlab/base/error.hpp>
#include "bench/engine/results_json.hpp"
#include "bench/support/machine.hpp"
#include "bench/support/quantity.hpp"
#include "bench/support/shell_form.hpp"
#include "bench/support/thread_team.hpp"
#include "microbench/memory/engine.hpp"
#include "microbench/memory/prefetchers.hpp"
#include "microbench/memory/results_json.hpp"
#include "microbench/memory/suite.hpp"
#include "microbench/memory/table.hpp"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pmlab::cli {
namespace {

// As on the command line; empty: not given.
struct given_options {
  memory_options memory;
  std::string device, size, fio, suite, filter, json, threads, spread, emulation_scale;
  std::string huge_pages = "on", prefetchers;
  bool list = false;
};

microbench::run_options read_options(const given_options& given) {
  microbench::run_options o;
  read_memory(given.memory, o);
  if (!given.spread.empty()) o.spread_percent = bench::parse_factor(given.spread, "--spread");
  if (!given.emulation_scale.empty()) {
    if (!o.medium.emulated())
      throw error("--emulation-scale needs an emulated medium", "leave it out, or use --medium emulated:PROFILE");
    o.emulation_scale = bench::parse_factor(given.emulation_scale, "--emulation-scale");
  }
  o.huge_pages = on_or_off(given.huge_pages, "--huge-pages");
  return o;
}

// The options that mean nothing for a device, or nothing without one.
int run_on_device(const given_options& given, const arguments& command_line) {
  for (const auto& [option, value] :
       {std::pair{"--medium", &given.memory.medium}, std::pair{"--threads", &given.threads},
        std::pair{"--prefetchers", &given.prefetchers}, std::pair{"--emulation-scale", &given.emulation_scale}})
    if (!value->empty())
      throw error(fmt::format("{} is about a memory, and --device is measured", option), "leave one of them out");
  if (given.memory.reuse)
    throw error("--reuse is about a pool, and --device is measured", "leave it out, or give --overwrite");
  return measure_drive({.device = given.device,
                        .suite = given.suite.empty() ? "drive" : given.suite,
                        .filter = given.filter,
                        .json = given.json,
                        .size = given.size,
                        .fio = given.fio,
                        .spread = given.spread,
                        .list = given.list,
                        .overwrite = given.memory.overwrite,
                        .quiet = given.memory.quiet},
                       command_line);
}

int run(const given_options& given, const arguments& command_line) {
  if (!given.device.empty()) return run_on_device(given, command_line);
  for (const auto& [option, value] : {std::pair{"--size", &given.size}, std::pair{"--fio", &given.fio}})
    if (!value->empty()) throw error(fmt::format("{} needs --device", option), "name one, for example --device memory");
  if (given.suite == "drive") throw error("suite drive needs --device", "name one, for example --device file:PATH");
  const microbench::run_options options = read_options(given);
  microbench::suite suite = microbench::load_suite(
      given.suite.empty() ? "quick" : given.suite,
      {.threads = given.threads.empty() ? std::vector<unsigned>() : thread_numbers(given.threads)});
  if (!given.filter.empty()) microbench::filter_cases(suite, given.filter);
  if (given.list) {
    fmt::print("{}", microbench::list_of_cases(suite));
    return success;
  }
  if (!given.json.empty()) bench::check_writable(given.json);
  const bool off = !given.prefetchers.empty() && !on_or_off(given.prefetchers, "--prefetchers");
  if (options.medium.simulated) hand_over(command_line);

  bench::progress shown(bench::progress::style_of_stderr(given.memory.quiet));
  // Simulated cores have none to switch.
  std::optional<microbench::prefetchers> switches;
  std::string state = "none";
  if (!options.medium.simulated) {
    switches.emplace(bench::usable_cpus());
    if (off) switches->switch_off();
    state = switches->state();
  }
  microbench::suite_report report = microbench::run_suite(options, suite, shown);
  switches.reset();
  report.prefetchers = state;
  if (std::string doubt = doubt_about_simulation(); options.medium.simulated && !doubt.empty())
    report.remarks.push_back(std::move(doubt));
  if (!given.json.empty()) {
    const microbench::run_record record{shell_form(command_line),
                                        given.filter.empty() ? std::nullopt : std::optional(given.filter)};
    bench::write_json(given.json,
                      microbench::results_to_json(options, record, bench::facts_of_this_machine(), suite, report));
  }
  if (!report.results.empty())
    fmt::print(bench::table_beside(given.json), "{}", microbench::results_table(options, suite, report));
  std::fflush(stdout);
  if (report.failure) fmt::print(stderr, "pmlab: error: {}\n", *report.failure);
  return report.failure ? failure : success;
}

}  // namespace

command add_microbench(CLI::App& program, const arguments& command_line) {
  CLI::App* const app =
      program.add_subcommand("microbench", "Measures a memory or a block device: latency, bandwidth, granularity");
  const auto given = std::make_shared<given_options>();
  const auto text = texts_of(*app);
  add_options_of_memory(*app, given->memory);
  text("--device", given->device,
       "file:PATH | emulated:PROFILE | simulated:PROFILE | memory: "
       "measure a block device in place of a memory (docs/blocks.md)");
  text("--size", given->size,
       "BYTES: of a new device; at most so many of an existing one are used; 256M if not given, 2G if it is modelled");
  text("--fio", given->fio, "on | off: beside a file device, measure fio; on if fio is installed");
  text("--suite", given->suite,
       "quick | paper | full | FILE.toml: the cases to measure; default: quick; "
       "for a device: quick | drive | full; default: drive");
  text("--filter", given->filter, "REGEX: only cases whose name has a match");
  app->add_flag("--list", given->list, "Show the cases and measure nothing");
  text("--threads", given->threads, "N[,N...] or N-M: in place of the suite's numbers of threads (mixes keep theirs)");
  text("--spread", given->spread, "PERCENT: repeat until repetitions agree so well; 5 if not given");
  text("--prefetchers", given->prefetchers, "off: switch the CPU's prefetchers off for the run (root); on: leave them");
  text("--huge-pages", given->huge_pages, "on | off; on if not given");
  text("--emulation-scale", given->emulation_scale,
       "X: play the device X times slower; as much as this machine needs if not given");
  text("--json", given->json, "FILE: write all results there (docs/microbench.md); -: to standard output");
  app->footer(
      "  pmlab microbench --medium simulated:aep --suite paper --json aep.json\n"
      "  pmlab microbench --medium pmem:/mnt/pmem/test.pool --suite full --prefetchers off --json optane.json\n"
      "  pmlab microbench --device file:/mnt/nvme/test --suite drive --json nvme.json\n"
      "  pmlab microbench --suite mine.toml --filter 'read-latency/.*access_bytes=256' --list");
  return {app, [given, command_line] { return run(*given, command_line); }};
}

}  // namespace pmlab::cli
