// The results of a suite as a table for people.
#include "microbench/memory/table.hpp"
#include "bench/support/aligned_table.hpp"
#include "bench/support/quantity.hpp"
#include "microbench/memory/table_notes.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>

namespace pmlab::microbench {
namespace {

std::string figure(double value, const std::string& unit) {
  return unit == "ns" ? fmt::format("{:.1f} ns", value) : fmt::format("{:.3f} GiB/s", value);
}

std::string figure(const std::optional<double>& value) { return value ? fmt::format("{:.0f}", *value) : "-"; }

std::string against_published(const case_result& r) {
  if (!r.what.published) return {};
  // Bandwidths of an emulated device that is played slower are lower by as much as its latencies are longer.
  const double as_published = r.unit == "ns" ? r.value() / r.scale : r.value() * r.scale;
  if (r.what.published_unit != r.unit) return figure(*r.what.published, r.what.published_unit);
  return fmt::format("{} ({:+.0f} %)", figure(*r.what.published, r.unit), 100 * (as_published / *r.what.published - 1));
}

// The figures of both sides of a mix; the percentiles of timed accesses.
std::string sides(const case_result& r) {
  std::string text;
  const auto add = [&](const char* name, const std::optional<side_figures>& side) {
    if (!side) return;
    if (r.reads && r.writes)
      text += fmt::format("{}{} {:.2f} GiB/s {:.0f} ns", text.empty() ? "" : ", ", name, side->gib_per_s,
                          side->ns_per_access);
    if (const auto& l = side->latency)
      text += fmt::format("{}p50 {:.0f}, p99 {}, p99.9 {}, max {:.0f}", text.empty() ? "" : ": ", l->p50,
                          figure(l->p99), figure(l->p99_9), l->max);
  };
  add("read", r.reads);
  add("write", r.writes);
  if (text.empty() && r.unit == "GiB/s") {
    const auto& side = r.reads ? r.reads : r.writes;
    text = fmt::format("{:.1f} ns an access", side ? side->ns_per_access : 0);
  }
  return text;
}

}  // namespace

std::string results_table(const run_options& options, const suite& s, const suite_report& report) {
  std::string text = fmt::format("{} on {}; prefetchers: {}\n\n", s.title, options.medium.text(), report.prefetchers);
  std::vector<cells> rows = {{"case", "value", "published", "spread", "repeats", ""}};
  for (const case_result& r : report.results) {
    if (r.skipped) continue;
    rows.push_back({r.what.name, figure(r.value(), r.unit), against_published(r),
                    fmt::format("{:.1f} %{}", r.spread_percent, r.steady ? "" : "!"), fmt::format("{}", r.repetitions),
                    sides(r)});
  }
  text += aligned(rows);
  if (const std::string skipped = skipped_cases(report); !skipped.empty()) text += '\n' + skipped;
  return text + table_notes(report, options.spread_percent);
}

std::string list_of_cases(const suite& s) {
  std::vector<cells> rows = {{"case", "operation", "bytes", "working set", "threads", "claims"}};
  for (const bench_case& c : s.cases) {
    rows.push_back({c.name, fmt::format("{} {} {}", pattern_text(c), to_string(c.operation), to_string(c.measure)),
                    bench::readable_bytes(c.access_bytes), bench::readable_bytes(c.working_set_bytes),
                    fmt::format("{}", c.threads), fmt::format("{}", fmt::join(c.claims, " "))});
  }
  return aligned(rows) + fmt::format("\n{} cases\n", s.cases.size());
}

}  // namespace pmlab::microbench
