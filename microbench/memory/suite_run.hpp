// The course of a suite, of a memory or of a drive: its cases in turn, until one fails. For sources that include
// fmt/format.h.
#pragma once

#include <pmlab/base/error.hpp>
#include "bench/support/progress.hpp"

#include <chrono>
#include <string>

#include <fmt/format.h>

namespace pmlab::microbench {

// Adds the results to the report. `medium`: its name; weight(case): seconds, supposed; measure(case): the result. A
// pmlab::error ends the run. `start`: when it began.
template <class Report, class Suite, class Weight, class Measure>
void run_cases(Report& report, const Suite& s, const std::string& medium, bench::progress& shown, Weight&& weight,
               Measure&& measure, std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now()) {
  shown.pass(fmt::format("{}: {} cases on {}", s.name, s.cases.size(), medium));
  for (const auto& c : s.cases) shown.expect({}, c.name, weight(c));
  const bench::progress::moving moving(shown);
  for (const auto& c : s.cases) {
    shown.begin({}, c.name, weight(c), fmt::format("case {}, {}", report.results.size() + 1, c.name), 0);
    try {
      report.results.push_back(measure(c));
      // Skipped cases do not affect the time of others.
      if (!report.results.back().skipped) shown.end();
    } catch (const error& e) {
      report.failure = fmt::format("{}: {}", c.name, e.what());
      break;
    }
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace pmlab::microbench
