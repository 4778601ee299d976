// The results of a run as one table for people.
#include "bench/engine/table.hpp"
#include "bench/engine/summary.hpp"
#include "bench/support/aligned_table.hpp"
#include "bench/support/quantity.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace pmlab::bench {
namespace {

std::string nanoseconds(double ns) {
  if (ns == 0) return "-";
  if (ns < 10'000) return fmt::format("{:.0f} ns", ns);
  if (ns < 10'000'000) return fmt::format("{:.1f} us", ns / 1e3);
  return fmt::format("{:.1f} ms", ns / 1e6);
}

constexpr std::string_view invalid_mark = "INVALID";

// Marked if it is below the clock's resolution.
std::string latency(double ns, const clock_limits& clock) {
  const bool unseen = ns > 0 && ns <= clock.floor_ns;
  return nanoseconds(ns) + (unseen ? "*" : clock.floor_ns > 0 ? " " : "");
}

// Warnings about the latencies of `rows`.
std::string clock_note(const std::vector<summary_row>& rows, const clock_limits& clock) {
  bool unseen = false;
  bool short_ones = false;
  constexpr double tenfold = 10;
  for (const summary_row& r : rows)
    for (const double ns : {r.latency.mean, r.latency.p50, r.latency.p99, r.latency.p99_9, r.latency.p99_99}) {
      unseen |= ns > 0 && ns <= clock.floor_ns;
      short_ones |= ns > 0 && ns < tenfold * clock.cost_ns;
    }
  std::string text;
  if (short_ones) text += fmt::format("note: every latency includes {:.0f} ns of reading the clock\n", clock.cost_ns);
  if (unseen)
    text += fmt::format(
        "* not longer than {:.0f} ns, as two readings of the clock with nothing between them: "
        "it cannot be told how short\n",
        clock.floor_ns);
  return text;
}

// Each reason once, with the rows that it is about.
std::string invalid_notes(const std::vector<summary_row>& rows) {
  std::vector<std::pair<std::string, std::string>> reasons;
  for (const summary_row& r : rows) {
    if (r.invalid.empty()) continue;
    const std::string name = fmt::format("{} {} ({})", r.index, r.phase, r.threads);
    const auto known =
        std::find_if(reasons.begin(), reasons.end(), [&](const auto& one) { return one.first == r.invalid; });
    if (known == reasons.end())
      reasons.emplace_back(r.invalid, name);
    else
      known->second += ", " + name;
  }
  std::string text;
  for (const auto& [reason, names] : reasons) text += fmt::format("{}: {}: {}\n", invalid_mark, names, reason);
  return text;
}

std::string throughput(const summary_row& row) {
  if (row.phase.starts_with("reopen")) return nanoseconds(1e9 / row.throughput);
  return fmt::format("{:.3f} M/s", row.throughput / 1e6);
}

std::string per_operation(std::uint64_t sum, const summary_row& row, int digits = 2) {
  if (row.operations == 0) return "-";
  return fmt::format("{:.{}f}", static_cast<double>(sum) / static_cast<double>(row.operations), digits);
}

// All flushes, of a counting medium or of a simulated one. std::nullopt: they were not counted.
std::optional<std::uint64_t> flushes_of(const summary_row& row) {
  if (row.accesses) return row.accesses->lines_flushed;
  if (row.persists) return row.persists->flushes;
  return std::nullopt;
}

bool only_reads(const summary_row& row) { return row.phase == "read" || row.phase == "absent" || row.phase == "scan"; }

// How much sooner operations end where flushes are left out: a line for each row that differs from the first in that,
// if there was a flush to leave out.
std::string flush_notes(const std::vector<summary_row>& rows) {
  std::string text;
  for (const summary_row& r : rows) {
    const auto first = std::find_if(rows.begin(), rows.end(), [&r](const summary_row& one) {
      return one.index == r.index && one.phase == r.phase && one.threads == r.threads;
    });
    if (!r.persistence || !first->persistence || first->latency.mean == 0) continue;
    if (media::keeps_caches(*r.persistence) == media::keeps_caches(*first->persistence)) continue;
    const summary_row& flushing = media::keeps_caches(*first->persistence) ? r : *first;
    if (only_reads(r) || flushes_of(flushing) == std::uint64_t{0}) continue;
    text +=
        fmt::format("{} of {} with {} thread{}: {:.0f} ns on average under {}, {:.0f} under {}: {:+.1f} %\n", r.phase,
                    r.index, r.threads, r.threads == 1 ? "" : "s", first->latency.mean, to_string(*first->persistence),
                    r.latency.mean, to_string(*r.persistence), 100 * (r.latency.mean / first->latency.mean - 1));
  }
  return text;
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
  const bool persisting = !counted && !options.persistence.empty() &&
                          any(rows, [](const summary_row& r) { return r.persists.has_value(); });
  const bool media_counted = any(rows, [](const summary_row& r) { return r.media_bytes.has_value(); });
  const bool of_modules = any(rows, [](const summary_row& r) { return r.modules.has_value(); });
  const bool driven = any(rows, [](const summary_row& r) { return r.driver_ns.has_value(); });
  const bool paged = any(rows, [](const summary_row& r) { return r.huge_page_share.has_value(); });
  const bool checked = any(rows, [](const summary_row& r) { return r.wrong.has_value(); });
  const bool hosted = any(rows, [](const summary_row& r) { return r.hosts > 1; });

  std::vector<cells> lines;
  cells head;
  if (hosted) head.emplace_back("hosts");
  head.insert(head.end(), {"threads", "phase"});
  if (!options.persistence.empty()) head.emplace_back("persistence");
  head.insert(head.end(), {"index", "throughput"});
  if (several) head.push_back("/ " + baseline);
  if (spread) head.emplace_back("spread");
  if (driven) head.emplace_back("driver");
  for (const char* const name : {"mean", "p50", "p99", "p99.9", "p99.99", "PM B/key", "DRAM B/key"})
    head.emplace_back(name);
  if (paged) head.emplace_back("on 2 MB pages");
  if (counted)
    for (const char* const name : {"lines read", "device read", "device written", "flushes", "fences"})
      head.emplace_back(name);
  if (persisting) head.insert(head.end(), {"flushes", "fences"});
  if (media_counted) head.insert(head.end(), {"media B read", "media B written"});
  if (hosted) head.insert(head.end(), {"refreshed", "published", "exchanges", "fetched"});
  if (of_modules)
    for (const char* const name : {"media reads", "media writes", "read requests", "write requests"})
      head.emplace_back(name);
  if (checked) head.emplace_back("wrong");
  const bool invalid = any(rows, [](const summary_row& r) { return !r.invalid.empty(); });
  if (invalid) head.emplace_back("");
  lines.push_back(head);
  for (const summary_row& r : rows) {
    cells line;
    if (hosted) line.push_back(fmt::format("{}", r.hosts));
    line.insert(line.end(), {fmt::format("{}", r.threads), r.phase});
    if (!options.persistence.empty()) line.emplace_back(r.persistence ? to_string(*r.persistence) : "-");
    line.insert(line.end(), {r.index, throughput(r)});
    if (several) line.push_back(r.ratio ? fmt::format("{:.2f}x", *r.ratio) : "-");
    if (spread) line.push_back(r.repeats > 1 ? fmt::format("{:.0f} %", 100 * r.spread) : "-");
    if (driven) line.push_back(r.driver_ns ? fmt::format("{:.1f} ns", *r.driver_ns) : "-");
    for (const double ns : {r.latency.mean, r.latency.p50, r.latency.p99, r.latency.p99_9, r.latency.p99_99})
      line.push_back(latency(ns, report.clock));
    line.push_back(r.space ? fmt::format("{:.1f}", r.space->pm) : "-");
    line.push_back(r.space ? fmt::format("{:.1f}", r.space->dram) : "-");
    if (paged) line.push_back(r.huge_page_share ? fmt::format("{:.0f} %", 100 * *r.huge_page_share) : "-");
    if (counted) {
      const media::counts sums = r.accesses.value_or(media::counts{});
      // Where flushes are left out only copied lines are counted as written: the others leave when they are evicted.
      const bool counts_written = r.accesses && !(r.persistence && media::keeps_caches(*r.persistence));
      for (const auto& [sum, has] : {std::pair{sums.lines_read, r.accesses.has_value()},
                                     {sums.device_lines_read, r.accesses.has_value()},
                                     {sums.device_lines_written, counts_written},
                                     {sums.lines_flushed, r.accesses.has_value()},
                                     {sums.fences, r.accesses.has_value()}})
        line.push_back(has ? per_operation(sum, r) : "-");
    }
    if (persisting)
      for (const std::uint64_t sum : {r.persists ? r.persists->flushes : 0, r.persists ? r.persists->fences : 0})
        line.push_back(r.persists ? per_operation(sum, r) : "-");
    if (media_counted)
      for (const std::uint64_t media_sums::*part : {&media_sums::bytes_read, &media_sums::bytes_written})
        line.push_back(r.media_bytes ? per_operation((*r.media_bytes).*part, r, 0) : "-");
    if (hosted)
      for (const counter<host_sums>& c : host_sums::counters)
        line.push_back(r.between_hosts ? per_operation((*r.between_hosts).*c.value, r) : "-");
    if (of_modules)
      for (std::size_t i = 0; i < pm_counts::kinds; ++i)
        line.push_back(r.modules ? per_operation(r.modules->counts[i], r) : "-");
    if (checked) line.push_back(r.wrong ? fmt::format("{}", *r.wrong) : "-");
    if (invalid) line.emplace_back(r.invalid.empty() ? "" : invalid_mark);
    lines.push_back(line);
  }

  std::string text = fmt::format(
      "medium {}{}{}, {} records{}, {}{}\n\n", options.medium.text(),
      options.medium.simulated ? "" : fmt::format(", {} pages", options.huge_pages ? "2 MB" : "4 KB"),
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
  if (std::string cost = flush_notes(rows); !cost.empty()) text += '\n' + cost;
  std::string notes = clock_note(rows, report.clock);
  if (driven)
    notes +=
        "note: driver is what the benchmark itself takes of each operation of a thread, measured with an index that "
        "keeps nothing\n";
  for (const std::string& remark : report.remarks) notes += fmt::format("note: {}\n", remark);
  notes += invalid_notes(rows);
  if (!notes.empty()) text += '\n' + notes;
  return text;
}

}  // namespace pmlab::bench
