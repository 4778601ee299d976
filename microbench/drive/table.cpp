#include "microbench/drive/table.hpp"
#include "bench/support/aligned_table.hpp"
#include "bench/support/quantity.hpp"
#include "microbench/memory/table_notes.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>

namespace pmlab::drive {
namespace {

std::string microseconds(const std::optional<double>& ns) { return ns ? fmt::format("{:.1f}", *ns / 1000) : "-"; }

cells row_of(const case_result& r) {
  return {r.what.name,
          fmt::format("{:.0f}", r.requests_per_s),
          fmt::format("{:.3f}", r.value()),
          microseconds(r.latency.p50),
          microseconds(r.latency.p99),
          r.cpu_ns ? fmt::format("{:.0f}", *r.cpu_ns) : "-",
          r.over_fio ? fmt::format("{:.2f}x", *r.over_fio) : "-",
          fmt::format("{:.0f} %{}", r.spread_percent, r.steady ? "" : "!")};
}

}  // namespace

std::string results_table(const run_options& options, const suite& s, target& on, const suite_report& report) {
  const std::string text =
      fmt::format("{}: {} on {} of {}{}\n\n", s.name, s.title, options.device.text(),
                  bench::readable_bytes(on.device().shape().bytes()), on.way().empty() ? "" : "; " + on.way());
  std::vector<cells> rows = {{"case", "requests/s", "GiB/s", "p50 us", "p99 us", "CPU ns", "of fio", "spread"}};
  for (const case_result& r : report.results)
    if (!r.skipped) rows.push_back(row_of(r));
  return text + aligned(rows) + microbench::skipped_cases(report) +
         microbench::table_notes(report, options.spread_percent);
}

std::string list_of_cases(const suite& s) {
  std::vector<cells> rows = {{"case", "requests", "bytes", "in flight", "done after", "claims"}};
  for (const drive_case& c : s.cases) {
    rows.push_back({c.name, fmt::format("{} {}s", to_string(c.where), to_string(c.what)),
                    bench::readable_bytes(c.bytes), fmt::format("{}", c.depth),
                    c.until == durability::none      ? "completion"
                    : c.until == durability::durable ? "durable write"
                                                     : "flush",
                    fmt::format("{}", fmt::join(c.claims, " "))});
  }
  return aligned(rows) + fmt::format("\n{} cases\n", s.cases.size());
}

}  // namespace pmlab::drive
