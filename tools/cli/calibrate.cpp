// `pmlab calibrate`: measures a memory and writes the device profile by which it is emulated and simulated.
#include "tools/cli/command.hpp"
#include "tools/cli/memory_options.hpp"
#include "tools/cli/outputs.hpp"
#include "tools/cli/simulated_program.hpp"
#include <pmlab/base/error.hpp>
#include "bench/devices/profile_file.hpp"
#include "bench/support/machine.hpp"
#include "bench/support/shell_form.hpp"
#include "bench/support/thread_team.hpp"
#include "microbench/memory/engine.hpp"
#include "microbench/memory/prefetchers.hpp"
#include "microbench/memory/profile_fit.hpp"
#include "microbench/memory/results_json.hpp"
#include "microbench/memory/suite.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pmlab::cli {
namespace {

struct request {
  memory_request memory;
  std::string out, json, suite = "calibrate";
  std::optional<media::device_profile> base;  // nothing: as the measured memory suggests
};

std::string provenance(const microbench::run_options& options, const std::string& base, const std::string& prefetchers,
                       const bench::machine_facts& facts) {
  std::string text =
      fmt::format("# Made by `pmlab calibrate` from medium {}, {}.\n", options.medium.text(), facts.date);
  if (options.medium.simulated)
    text += "# Virtual time: the figures are those of the simulated machine.\n";
  else
    text +=
        fmt::format("# Machine: {}, {} CPUs; {}; prefetchers {}.\n", facts.cpu, facts.cores, facts.kernel, prefetchers);
  return text + fmt::format("# pmlab {}, commit {}. Figures marked so are those of profile {}.\n", facts.version,
                            facts.commit, base);
}

struct plan {
  microbench::run_options options;
  microbench::suite suite;
};

// Throws pmlab::error.
plan plan_of(const request& asked) {
  check(asked.memory.options);
  if (asked.out.empty()) throw error("pmlab calibrate needs a file for the profile", "give --out FILE.toml");
  if (!asked.out.ends_with(".toml"))
    throw error(fmt::format("--out {} does not end in .toml, and would not be taken as a profile", asked.out),
                "give a name such as mine.toml");
  check_outputs({{"--out", asked.out}, {"--json", asked.json}});
  return {asked.memory.options, microbench::load_suite(asked.suite)};
}

// Throws pmlab::error: not all was measured, and no profile can be made.
microbench::suite_report run(const plan& p, bool quiet) {
  bench::progress shown(bench::progress::style_of_stderr(quiet));
  microbench::suite_report report = microbench::run_suite(p.options, p.suite, shown);
  if (report.failure) throw error(*report.failure, "run `pmlab microbench` with the same suite for details");
  report.prefetchers = p.options.medium.simulated ? "none" : microbench::prefetchers(bench::usable_cpus()).state();
  return report;
}

// What is shown below the profile.
std::string remarks_of(const microbench::suite_report& report, std::size_t measured, const std::string& out) {
  std::string text = fmt::format("\n{} of the figures were measured, in {:.0f} s. Use it: --medium emulated:{}\n",
                                 measured, report.seconds, out.find('/') == std::string::npos ? "./" + out : out);
  for (const microbench::case_result& r : report.results)
    if (r.skipped) text += fmt::format("  {}: {}\n", r.what.name, *r.skipped);
  for (const std::string& remark : report.remarks) text += fmt::format("  {}\n", remark);
  return text;
}

int measure(const request& asked, const arguments& command_line) {
  const plan p = plan_of(asked);
  if (p.options.medium.simulated) hand_over(command_line);
  const microbench::suite_report report = run(p, asked.memory.quiet);
  const media::device_profile base =
      asked.base ? *asked.base : media::load_profile(microbench::has_granules(report.results) ? "aep" : "dram");
  microbench::fitted_profile fitted = microbench::fit_profile(base, report.results);
  fitted.profile.description = "fitted to " + p.options.medium.text();
  const bench::machine_facts facts = bench::facts_of_this_machine();
  const std::string profile = provenance(p.options, base.name, report.prefetchers, facts) +
                              media::profile_text(fitted.profile, fitted.origins, "not measured: as " + base.name);
  static_cast<void>(media::parse_profile(profile, asked.out));
  return write({.files = {{asked.json,
                           [&] {
                             return text_of(microbench::results_to_json(
                                 p.options, {shell_form(command_line), std::nullopt}, facts, p.suite, report));
                           }},
                          {asked.out, [&] { return profile; }}},
                .table = profile + remarks_of(report, fitted.measured, asked.out)});
}

}  // namespace

command add_calibrate(CLI::App& program, const arguments& command_line) {
  CLI::App* const app = program.add_subcommand("calibrate", "Measures a memory and writes a device profile of it");
  const auto asked = std::make_shared<request>();
  const auto text = texts_of(*app);
  add_options_of_memory(*app, asked->memory);
  text("--out", asked->out, "FILE.toml: the profile");
  parsed_texts_of (*app)(
      "--base", "", "PROFILE: source of figures that cannot be measured; default: aep if there are granules, else dram",
      asked->base, media::load_profile);
  text("--suite", asked->suite, "FILE: an edited copy of microbench/memory/suites/calibrate.toml");
  text("--json", asked->json, "FILE: write the measurements there (docs/microbench.md)");
  app->footer(
      "  pmlab calibrate --medium pmem:/mnt/pmem/test.pool --out mine.toml\n"
      "  pmlab bench --medium emulated:./mine.toml --index cceh");
  return {app, [asked, command_line] { return measure(*asked, command_line); }};
}

}  // namespace pmlab::cli
