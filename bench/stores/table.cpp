#include "bench/stores/table.hpp"
#include "bench/engine/summary.hpp"
#include "bench/support/aligned_table.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace pmlab::store_bench {
namespace {

// The repetitions of one store in one case.
template <class Result>
struct row {
  std::string what;
  std::string store;
  std::vector<const Result*> results;
};

template <class Result>
std::vector<row<Result>> rows_of(const report_of<Result>& report) {
  std::vector<row<Result>> rows;
  for (const Result& r : report.results) {
    std::string what = text_of(r.what);
    const auto same = [&](const row<Result>& other) { return other.what == what && other.store == r.of.store; };
    auto at = std::ranges::find_if(rows, same);
    if (at == rows.end()) at = rows.insert(rows.end(), {std::move(what), r.of.store, {}});
    at->results.push_back(&r);
  }
  return rows;
}

// figure(result): a number, or nothing. "-", unless all of them have one.
template <class Result, class Figure>
std::optional<double> median_of(const row<Result>& r, Figure&& figure) {
  std::vector<double> values;
  for (const Result* one : r.results)
    if (const std::optional<double> value = figure(*one)) values.push_back(*value);
  return values.size() == r.results.size() ? std::optional(bench::median(values)) : std::nullopt;
}

std::string text_or_dash(std::optional<double> value, int decimals) {
  return value ? fmt::format("{:.{}f}", *value, decimals) : "-";
}

template <class Result>
double throughput_of(const row<Result>& r) {
  return *median_of(r, [](const Result& c) { return std::optional(c.operations_per_s()); });
}

// The spread of the throughput: the distance of the extremes, in % of the median.
template <class Result>
double spread_of(const row<Result>& r) {
  const auto by = [](const Result* a, const Result* b) { return a->operations_per_s() < b->operations_per_s(); };
  const auto [least, most] = std::ranges::minmax_element(r.results, by);
  return ((*most)->operations_per_s() - (*least)->operations_per_s()) / throughput_of(r) * 100;
}

template <class Result>
cells cells_of(const row<Result>& r, const std::vector<row<Result>>& all, const std::string& baseline) {
  constexpr double micro = 1e-3;
  const auto microseconds = [&](auto&& ns) {
    return text_or_dash(median_of(r, [&](const Result& c) { return std::optional(ns(c) * micro); }), 1);
  };
  if (r.results.front()->opening)
    return {r.what,
            r.store,
            "-",
            "-",
            microseconds([](const Result& c) { return c.opening->first_read_ns; }),
            microseconds([](const Result& c) { return c.opening->complete_ns; }),
            "-",
            "-",
            "-",
            "-",
            "-"};
  const auto other =
      std::ranges::find_if(all, [&](const row<Result>& o) { return o.what == r.what && o.store == baseline; });
  const bool compares = other != all.end() && throughput_of(*other) > 0;
  const auto latency = [&](auto member) {
    return microseconds([&](const Result& c) { return c.latency ? static_cast<double>((*c.latency).*member) : 0.0; });
  };
  return {
      r.what,
      r.store,
      fmt::format("{:.0f}", throughput_of(r)),
      text_or_dash(median_of(r,
                             [](const Result& c) {
                               return c.time_ns > 0 ? std::optional(static_cast<double>(c.bytes) / c.time_ns * 1e3)
                                                    : std::nullopt;
                             }),
                   0),
      latency(&latency_figures::p50),
      latency(&latency_figures::p99),
      text_or_dash(
          median_of(r, [](const Result& c) { return c.cpu_ns ? std::optional(*c.cpu_ns * micro) : std::nullopt; }), 2),
      text_or_dash(median_of(r, [](const Result& c) { return c.host_amplification(); }), 3),
      text_or_dash(median_of(r, [](const Result& c) { return c.device_amplification(); }), 2),
      compares ? fmt::format("{:.2f}x", throughput_of(r) / throughput_of(*other)) : "-",
      fmt::format("{:.0f} %", spread_of(r))};
}

std::string notes_of(const case_result& /*r*/) { return {}; }
std::string notes_of(const pair_result& r) {
  std::string text;
  if (const auto ratio = r.hit_ratio())
    text += fmt::format("{} {}: {:.1f} % of the lookups in its cache hit\n", text_of(r.what), r.of.store, *ratio * 100);
  if (r.after && r.after->written_bytes + r.after->staging_written_bytes != 0)
    text += fmt::format("{} {}: left {:.1f} MB of writes for later\n", text_of(r.what), r.of.store,
                        static_cast<double>(r.after->written_bytes + r.after->staging_written_bytes) / 1e6);
  return text;
}

template <class Result>
std::string table_of(const report_of<Result>& report, const std::string& baseline) {
  const std::vector<row<Result>> rows = rows_of(report);
  std::vector<cells> table = {{"case", "store", "operations/s", "MB/s", "p50 us", "p99 us", "CPU us", "host WA",
                               "drive WA", "of " + baseline, "spread"}};
  for (const row<Result>& r : rows) table.push_back(cells_of(r, rows, baseline));
  std::string text = aligned(table);
  if (std::ranges::any_of(rows, [](const row<Result>& r) { return r.results.front()->opening.has_value(); }))
    text += "phase open: p50 is the time to the first read, p99 the time until all is rebuilt\n";
  for (const Result& r : report.results) {
    if (r.repetition != 1) continue;
    const auto operations = static_cast<double>(r.operations);
    if (r.medium && r.operations != 0)
      text += fmt::format("{} {}: {:.2f} lines, {:.2f} flushes, {:.2f} fences, {:.2f} lines read per operation\n",
                          text_of(r.what), r.of.store, static_cast<double>(r.medium->lines_written()) / operations,
                          static_cast<double>(r.medium->lines_flushed) / operations,
                          static_cast<double>(r.medium->fences) / operations,
                          static_cast<double>(r.medium->lines_read) / operations);
    text += notes_of(r);
  }
  std::uint64_t verified = 0;
  for (const Result& r : report.results) verified += r.verified;
  for (const final_check& f : report.at_end) verified += f.verified;
  text += fmt::format("{} reads checked, {} wrong\n", verified, report.wrong_answers());
  for (const std::string& remark : report.remarks) text += "note: " + remark + '\n';
  return text;
}

}  // namespace

std::string results_table(const run_report& report, const std::string& baseline) { return table_of(report, baseline); }
std::string results_table(const pair_report& report, const std::string& baseline) { return table_of(report, baseline); }

}  // namespace pmlab::store_bench
