// pmlab verify --program: the states that a crash of a program may leave in its pool.
#include "checker/programs/program_run.hpp"
#include "checker/programs/program_states.hpp"
#include "checker/verify/check_command.hpp"
#include "tools/cli/verify_run.hpp"
#include "bench/support/progress.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>

namespace pmlab::cli {
namespace {

namespace fs = std::filesystem;

constexpr double seconds_of_a_check = 30;
constexpr double least_seconds_of_a_run = 10;

std::string in_words(const programs::state_counts& c) {
  return fmt::format("{} stores, {} flushes, {} fences, {} marks; {} crash points, {} different states checked",
                     c.stores, c.flushes, c.fences, c.marks, c.points, c.checked);
}

std::string preloaded(const char* name) {
  return fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib/pmlab" / name;
}

std::string recoveries(const programs::state_counts& c) {
  if (c.recoveries != 0)
    return fmt::format("  {} recoveries were crashed in turn, in {} states\n", c.recoveries, c.recovery_states);
  return c.no_recoveries.empty() ? "" : fmt::format("  recoveries were not crashed: {}\n", c.no_recoveries);
}

std::string extent(const verify_request& request, const programs::state_counts& c) {
  if (c.found) return "";
  if (!c.whole_run)
    return fmt::format(
        "  not complete: the budget of {} s ended in the first pass, at step {} of the {} recorded: give a larger "
        "--budget\n",
        request.budget, c.reached_step, c.steps);
  if (c.sampled_points == 0) return "  complete: these are all states of this run\n";
  return fmt::format("  {} of the points have more states, which were sampled\n", c.sampled_points);
}

}  // namespace

int verify_program(const verify_request& request) {
  verify::scratch_file::remove_on_signals();
  bench::progress shown(bench::progress::style_of_stderr(request.quiet));
  shown.pass("recording " + request.program);
  programs::program_options wanted;
  wanted.command = request.program;
  wanted.recorder = preloaded("recorder.so");
  wanted.seconds = std::max(least_seconds_of_a_run, request.budget);
  const programs::program_run run(wanted);

  programs::state_options options;
  options.check = request.check;
  options.check_seconds = seconds_of_a_check;
  options.check_server = preloaded("check_server.so");
  options.seed = request.seed;
  options.states_per_point = request.states;
  options.budget_seconds = request.budget;
  options.checks_at_once = std::clamp(std::thread::hardware_concurrency(), 1U, 64U);
  options.after = request.after;
  options.recorder = wanted.recorder;
  const std::string name = fs::path(request.program.substr(0, request.program.find(' '))).filename();
  options.keep = request.keep.empty() ? name + ".crash" : request.keep;
  shown.pass(fmt::format("{}: checking crash states for at most {} s", name, request.budget));
  const programs::state_counts c = programs::explore_program(
      run, options, [&](const programs::state_counts& now) { shown.show(in_words(now), std::nullopt); });
  shown.clear();

  fmt::print("{}: {} in {:.1f} s: {}\n{}{}", name, in_words(c), c.seconds, c.found ? "1 VIOLATION" : "no violation",
             extent(request, c), recoveries(c));
  if (!c.found) return c.whole_run ? success : not_complete;
  const programs::program_violation& v = *c.found;
  fmt::print("\n  {}\n  crash {}{}\n", v.what, v.crash, v.lost);
  for (const std::string& mark : v.marks) fmt::print("  marked before the crash: {}\n", mark);
  // Opening it recovers it.
  const std::string copy = v.image + ".copy";
  fmt::print("  the state is kept:\n    {}\n  to check it again:\n    cp {} {} && PMLAB_IO_MARKS={} {}\n", v.image,
             v.image, copy, v.marks_file, verify::check_command::with_path(request.check, copy));
  std::fflush(stdout);
  return failure;
}

}  // namespace pmlab::cli
