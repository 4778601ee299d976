// `pmlab calibrate`: measures a memory and writes the device profile by which it is emulated and simulated.
#include "tools/cli/command.hpp"
#include "tools/cli/memory_options.hpp"
#include "tools/cli/simulated_program.hpp"
#include <pmlab/base/error.hpp>
#include "bench/devices/profile_file.hpp"
#include "bench/engine/results_json.hpp"
#include "bench/support/machine.hpp"
#include "bench/support/shell_form.hpp"
#include "bench/support/thread_team.hpp"
#include "bench/support/write_file.hpp"
#include "microbench/memory/engine.hpp"
#include "microbench/memory/prefetchers.hpp"
#include "microbench/memory/profile_fit.hpp"
#include "microbench/memory/results_json.hpp"
#include "microbench/memory/suite.hpp"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pmlab::cli {
namespace {

// As on the command line; empty: not given.
struct given_options {
  memory_options memory;
  std::string out, base, json, suite = "calibrate";
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

int run(const given_options& given, const arguments& command_line) {
  microbench::run_options options;
  read_memory(given.memory, options);
  if (given.out.empty()) throw error("pmlab calibrate needs a file for the profile", "give --out FILE.toml");
  if (!given.out.ends_with(".toml"))
    throw error(fmt::format("--out {} does not end in .toml, and would not be taken as a profile", given.out),
                "give a name such as mine.toml");
  std::optional<media::device_profile> base;
  if (!given.base.empty()) base = media::load_profile(given.base);
  bench::check_writable(given.out);
  if (!given.json.empty()) bench::check_writable(given.json);
  if (options.medium.simulated) hand_over(command_line);

  const microbench::suite suite = microbench::load_suite(given.suite);
  bench::progress shown(bench::progress::style_of_stderr(given.memory.quiet));
  microbench::suite_report report = microbench::run_suite(options, suite, shown);
  if (report.failure) throw error(*report.failure, "run `pmlab microbench` with the same suite for details");
  report.prefetchers = options.medium.simulated ? "none" : microbench::prefetchers(bench::usable_cpus()).state();
  const bench::machine_facts facts = bench::facts_of_this_machine();
  if (!given.json.empty()) {
    bench::write_json(given.json, microbench::results_to_json(options, {shell_form(command_line), std::nullopt}, facts,
                                                              suite, report));
  }

  if (!base) base = media::load_profile(microbench::has_granules(report.results) ? "aep" : "dram");
  const std::string base_name = base->name;
  microbench::fitted_profile fitted = microbench::fit_profile(*base, report.results);
  fitted.profile.description = "fitted to " + options.medium.text();
  const std::string text = provenance(options, base_name, report.prefetchers, facts) +
                           media::profile_text(fitted.profile, fitted.origins, "not measured: as " + base_name);
  static_cast<void>(media::parse_profile(text, given.out));
  write_file(given.out, text);
  std::FILE* const shown_text = bench::table_beside(given.json);
  fmt::print(shown_text, "{}", text);
  fmt::print(shown_text, "\n{} of the figures were measured, in {:.0f} s. Use it: --medium emulated:{}\n",
             fitted.measured, report.seconds, given.out.find('/') == std::string::npos ? "./" + given.out : given.out);
  for (const microbench::case_result& r : report.results)
    if (r.skipped) fmt::print(shown_text, "  {}: {}\n", r.what.name, *r.skipped);
  for (const std::string& remark : report.remarks) fmt::print(shown_text, "  {}\n", remark);
  return success;
}

}  // namespace

command add_calibrate(CLI::App& program, const arguments& command_line) {
  CLI::App* const app = program.add_subcommand("calibrate", "Measures a memory and writes a device profile of it");
  const auto given = std::make_shared<given_options>();
  const auto text = texts_of(*app);
  add_options_of_memory(*app, given->memory);
  text("--out", given->out, "FILE.toml: the profile");
  text("--base", given->base,
       "PROFILE: source of figures that cannot be measured; default: aep if there are granules, else dram");
  text("--suite", given->suite, "FILE: an edited copy of microbench/memory/suites/calibrate.toml");
  text("--json", given->json, "FILE: write the measurements there (docs/microbench.md)");
  app->footer(
      "  pmlab calibrate --medium pmem:/mnt/pmem/test.pool --out mine.toml\n"
      "  pmlab bench --medium emulated:./mine.toml --index cceh");
  return {app, [given, command_line] { return run(*given, command_line); }};
}

}  // namespace pmlab::cli
