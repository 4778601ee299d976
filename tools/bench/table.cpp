// The results of a run as one table for people.
#include "tools/bench/table.hpp"
#include "tools/bench/summary.hpp"
#include "tools/support/quantity.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

namespace pmlab::bench {
namespace {

using cells = std::vector<std::string>;

// Columns as wide as their widest cell; the first `left` of them flush left.
std::string aligned(const std::vector<cells>& rows, std::size_t left) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const cells& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const cells& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i < left ? fmt::format("{:<{}}  ", row[i], widths[i]) : fmt::format("{:>{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

std::string nanoseconds(double ns) {
  if (ns == 0) return "-";
  if (ns < 10'000) return fmt::format("{:.0f} ns", ns);
  if (ns < 10'000'000) return fmt::format("{:.1f} us", ns / 1e3);
  return fmt::format("{:.1f} ms", ns / 1e6);
}

std::string throughput(const summary_row& row) {
  if (row.phase.starts_with("reopen")) return nanoseconds(1e9 / row.throughput);
  return fmt::format("{:.3f} M/s", row.throughput / 1e6);
}

bool any(const std::vector<summary_row>& rows, bool (*has)(const summary_row&)) {
  return std::any_of(rows.begin(), rows.end(), has);
}

}  // namespace

std::string results_table(const bench_options& options, const bench_report& report) {
  const std::string& baseline = options.baseline;
  const std::vector<summary_row> rows = summarize(report.results, baseline);
  const bool several = options.indexes.size() > 1;
  const bool spread = any(rows, [](const summary_row& r) { return r.repeats > 1; });
  const bool counted = any(rows, [](const summary_row& r) { return r.accesses.has_value(); });
  const bool checked = any(rows, [](const summary_row& r) { return r.wrong.has_value(); });

  std::vector<cells> lines;
  cells head = {"threads", "phase", "index", "throughput"};
  if (several) head.push_back("/ " + baseline);
  if (spread) head.emplace_back("spread");
  for (const char* const name : {"mean", "p50", "p99", "p99.9", "p99.99", "PM B/key", "DRAM B/key"})
    head.emplace_back(name);
  if (counted)
    for (const char* const name : {"lines read", "device read", "device written", "flushes", "fences"})
      head.emplace_back(name);
  if (checked) head.emplace_back("wrong");
  lines.push_back(head);
  for (const summary_row& r : rows) {
    cells line = {fmt::format("{}", r.threads), r.phase, r.index, throughput(r)};
    if (several) line.push_back(r.ratio ? fmt::format("{:.2f}x", *r.ratio) : "-");
    if (spread) line.push_back(r.repeats > 1 ? fmt::format("{:.0f} %", 100 * r.spread) : "-");
    for (const double ns : {r.latency.mean, r.latency.p50, r.latency.p99, r.latency.p99_9, r.latency.p99_99})
      line.push_back(nanoseconds(ns));
    line.push_back(r.space ? fmt::format("{:.1f}", r.space->pm) : "-");
    line.push_back(r.space ? fmt::format("{:.1f}", r.space->dram) : "-");
    if (counted) {
      const access_sums sums = r.accesses.value_or(access_sums{});
      for (const std::uint64_t sum :
           {sums.pm_lines_read, sums.device_lines_read, sums.device_lines_written, sums.flushes, sums.fences})
        line.push_back(r.accesses && r.operations > 0
                           ? fmt::format("{:.2f}", static_cast<double>(sum) / static_cast<double>(r.operations))
                           : "-");
    }
    if (checked) line.push_back(r.wrong ? fmt::format("{}", *r.wrong) : "-");
    lines.push_back(line);
  }

  std::string text = fmt::format(
      "medium {}{}, {} records{}, {}{}\n\n", options.medium.text(),
      options.emulation && options.emulation->profile.scale != 1
          ? fmt::format(" (all times {:.2f} times as long)", options.emulation->profile.scale)
          : "",
      short_count(options.trace ? options.trace->load.size() : options.records),
      options.trace  ? " of trace " + options.trace->source
      : options.keys ? fmt::format(", keys {}", options.keys->name())
                     : "",
      options.repeats == 1 ? "1 repeat" : fmt::format("medians of {} repeats", options.repeats),
      options.batch > 1 ? fmt::format(", reads in batches of {} (latencies are those of a batch)", options.batch) : "");
  text += aligned(lines, 3);
  if (!report.skipped.empty()) text += '\n';
  for (const skipped_phase& s : report.skipped)
    text += fmt::format("left out: {} of {} with {} thread{}: {}\n", s.phase, s.index, s.threads,
                        s.threads == 1 ? "" : "s", s.reason);
  if (!report.remarks.empty()) text += '\n';
  for (const std::string& remark : report.remarks) text += fmt::format("note: {}\n", remark);
  return text;
}

}  // namespace pmlab::bench
