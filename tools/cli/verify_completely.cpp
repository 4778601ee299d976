// pmlab verify --exhaustive: every state that a crash may leave at any point of one history.
#include "checker/verify/complete_search.hpp"
#include "checker/verify/source_lines.hpp"
#include "tools/cli/verify_run.hpp"
#include <pmlab/base/error.hpp>
#include "bench/support/progress.hpp"
#include "bench/support/shell_form.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

namespace pmlab::cli {
namespace {

using verify::complete_counts;
using verify::complete_request;
using verify::complete_result;

complete_request request_of(const verify_request& r) {
  complete_request c;
  constexpr unsigned most_processes = 16;
  c.seed = r.seed;
  if (r.operations != 0) c.operations = r.operations;
  c.keys = r.keys_given ? r.keys : std::max<std::size_t>(c.operations, 2);
  c.steps = parse_steps(r.steps);
  c.every_state = r.every_state;
  c.window = r.window;
  if (r.budget_given) c.budget_seconds = r.budget;
  c.shrink_seconds = r.steps.empty() ? r.shrink : 0;
  c.processes = std::clamp(std::thread::hardware_concurrency(), 1U, most_processes);
  return c;
}

// Small numbers as they are, others as a power of ten.
std::string in_words(long double states) {
  constexpr long double most_digits = 1e6L;
  if (states < most_digits) return fmt::format("{:.0f}", static_cast<double>(states));
  return fmt::format("10^{:.1f}", static_cast<double>(std::log10(states)));
}

std::string replay_command(const verify_request& request, const std::string& name, const verify::violation& v) {
  std::string text = "pmlab verify " + made_with(request, name);
  if (request.persistence != "adr") text += " --persistence " + request.persistence;
  text +=
      fmt::format(" --exhaustive --operations {} --keys {} --seed {}", v.round.operations, v.round.keys, v.round.seed);
  if (request.window != 0) text += fmt::format(" --window {}", request.window);
  if (!v.round.steps.empty()) text += fmt::format(" --steps {}", fmt::join(v.round.steps, ","));
  return text;
}

int verify_one_completely(const verify_request& request, const verify::subject& kind) {
  const complete_request wanted = request_of(request);
  bench::progress shown(bench::progress::style_of_stderr(request.quiet));
  shown.pass(fmt::format("{}: every crash of {} operations", kind.name, wanted.operations));
  const complete_result result =
      verify::search_completely(kind, wanted, [&](const complete_counts& done, const complete_counts& all) {
        shown.show(fmt::format("{} of {} crash points, {} openings", done.points_covered, all.points, done.openings),
                   std::nullopt);
      });
  shown.clear();
  // What one process found counts, even if another one could not go on.
  if (!result.problem.empty() && !result.found)
    throw error(kind.name + " cannot be verified: " + verify::with_source_lines(result.problem), result.remedy);
  const complete_counts& c = result.counts;
  fmt::print(
      "{}: {} operations, {} crash points, {} states; {} openings, {} outcomes (fingerprint {:016x}), {} states "
      "merged, in {:.1f} s: ",
      kind.name, result.operations, c.points, in_words(c.states), c.openings, c.outcomes, c.fingerprint,
      in_words(std::max(c.states - static_cast<long double>(c.openings), 0.0L)), result.seconds);
  if (result.found) {
    fmt::print("1 VIOLATION\n");
    print(*result.found, replay_command(request, kind.name, *result.found));
    return failure;
  }
  if (result.complete) {
    fmt::print("complete{}: no violation\n",
               request.window == 0 ? "" : fmt::format(" where lines wait for {} answers at most", request.window));
    return success;
  }
  fmt::print("not complete: {} of {} crash points, no violation in them\n", c.points_covered, c.points);
  return not_complete;
}

}  // namespace

int verify_completely(const verify_request& request, const std::vector<const verify::subject*>& kinds) {
  for (const verify::subject* kind : kinds) verify::check_searchable(*kind);
  int worst = success;
  for (const verify::subject* kind : kinds) {
    const int status = verify_one_completely(request, *kind);
    if (worst != failure && status != success) worst = status;
    std::fflush(stdout);
  }
  return worst;
}

}  // namespace pmlab::cli
