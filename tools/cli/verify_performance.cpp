// `pmlab verify --performance`: flushes and fences that had no effect.
#include "tools/cli/verify_performance.hpp"
#include "checker/verify/flush_report.hpp"
#include "checker/verify/source_lines.hpp"
#include <pmlab/base/error.hpp>
#include "bench/support/progress.hpp"

#include <cstdio>
#include <optional>

#include <fmt/format.h>

namespace pmlab::cli {
namespace {

void print(const verify::wasteful_line& line) {
  fmt::print("  {:>8} {:>6.1f} %  {:<40}  {}\n", line.times,
             100 * static_cast<double>(line.times) / static_cast<double>(line.of), in_words(line.kind), line.place);
  if (!line.reason.empty() && has_no_effect(line.kind)) fmt::print("{:21}{}\n", "", line.reason);
}

}  // namespace

bool print_performance(const verify::subject& kind, verify::campaign_options options, bool quiet) {
  verify::flush_profile& profile = verify::flush_profile::make();
  options.crashes = options.schedules = false;
  options.round.threads = 1;
  options.round.profile = &profile;
  options.shrink_seconds = 0;
  options.jobs = 1;  // there is one profile
  bench::progress shown(bench::progress::style_of_stderr(quiet));
  shown.pass(fmt::format("{}: counting flushes and fences", kind.name));
  const verify::campaign_result result =
      verify::run_campaign(kind, options, [&](const verify::round_counts& counts, double /*seconds*/) {
        shown.show(fmt::format("{} rounds, {} operations", counts.rounds, profile.operations()), std::nullopt);
      });
  shown.clear();
  if (!result.problem.empty())
    throw error(kind.name + " cannot be run: " + verify::with_source_lines(result.problem), result.remedy);
  if (result.found)
    throw error(kind.name + " ends with a violation: " + verify::with_source_lines(result.found->what),
                "verify it without --performance first");
  if (result.counts.rounds == 0)
    throw error(fmt::format("{} was not counted: in {:.1f} s no round has ended", kind.name, result.seconds),
                "give a larger --budget");
  const verify::flush_report report = report_of(profile);
  fmt::print("{}: {} rounds, {} operations, {} flushes, {} fences: ", kind.name, result.counts.rounds,
             report.operations, report.flushes, report.fences);
  std::size_t wasteful = 0, unexplained = 0;
  for (const verify::wasteful_line& line : report.lines) {
    if (!has_no_effect(line.kind)) continue;
    ++wasteful;
    unexplained += line.reason.empty() ? 1 : 0;
  }
  if (wasteful == 0)
    fmt::print("each has an effect\n");
  else
    fmt::print("{} lines with some that have none, {} without a reason\n", wasteful, unexplained);
  if (!report.lines.empty()) fmt::print("  {:>8} {:>8}  {:<40}  {}\n", "times", "share", "kind", "line");
  for (const verify::wasteful_line& line : report.lines) print(line);
  std::fflush(stdout);
  return unexplained == 0;
}

}  // namespace pmlab::cli
