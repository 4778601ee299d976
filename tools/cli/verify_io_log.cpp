// pmlab verify --io-log: the states that a crash of a recorded run may have left on its device.
#include "checker/verify/io_log_states.hpp"
#include "tools/cli/verify_run.hpp"
#include "bench/support/progress.hpp"

#include <cstdio>
#include <functional>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace pmlab::cli {
namespace {

constexpr double seconds_of_a_check = 30;

std::string in_words(const verify::io_log_result& r) {
  return fmt::format("{} writes, {} flushes, {} marks; {} crash points, {} states ({} different ones checked)",
                     r.writes, r.flushes, r.marks, r.points, r.states, r.checked);
}

}  // namespace

int verify_io_log(const verify_request& request) {
  verify::io_log_options options;
  options.log = request.io_log;
  options.base = request.base;
  options.seed = request.seed;
  if (request.states != 0) options.states_per_point = request.states;
  options.budget_seconds = request.budget;
  options.may_be_cut_off = request.cut_off;
  const bool acknowledged = request.check == "acknowledged";
  std::function<std::string(const verify::io_log_state&)> check;
  if (!acknowledged) check = verify::check_by_command(request.check, seconds_of_a_check);

  bench::progress shown(bench::progress::style_of_stderr(request.quiet));
  shown.pass(fmt::format("{}: checking crash states for at most {} s", request.io_log, request.budget));
  verify::io_log_result result = verify::explore_io_log(
      options, check, [&](const verify::io_log_result& r) { shown.show(in_words(r), std::nullopt); });
  shown.clear();
  if (acknowledged && result.unflushed != 0 && !result.found) {
    result.found.emplace();
    result.found->what =
        fmt::format("{} writes had completed before a mark, and no flush covered them", result.unflushed);
  }

  fmt::print("{}: {} in {:.1f} s: {}\n", request.io_log, in_words(result), result.seconds,
             result.found ? "1 VIOLATION" : "no violation");
  if (!result.whole_log)
    fmt::print("  the budget of {} s ended at byte {} of the log: give --budget, or fewer --states\n", request.budget,
               result.log_bytes);
  if (result.cut_off) fmt::print("  the log ends in the middle of a record, which was left out\n");
  if (!result.found) return success;
  const verify::io_log_violation& v = *result.found;
  fmt::print("\n  {}{}\n", v.what, v.lost);
  for (const std::string& mark : v.marks) fmt::print("  marked before the crash: {}\n", mark);
  if (!v.image.empty())
    fmt::print("  the state is kept:\n    {}\n  to check it again:\n    {} {}\n", v.image, request.check, v.image);
  std::fflush(stdout);
  return failure;
}

}  // namespace pmlab::cli
