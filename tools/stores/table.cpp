#include "tools/stores/table.hpp"
#include "tools/bench/summary.hpp"
#include "tools/support/aligned_table.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace pmlab::store_bench {
namespace {

// The repetitions of one store in one case.
struct row {
  std::string what;
  std::string store;
  std::vector<const case_result*> results;
};

std::vector<row> rows_of(const run_report& report) {
  std::vector<row> rows;
  for (const case_result& r : report.results) {
    std::string what = text_of(r.what);
    const auto same = [&](const row& other) { return other.what == what && other.store == r.of.store; };
    auto at = std::ranges::find_if(rows, same);
    if (at == rows.end()) at = rows.insert(rows.end(), {std::move(what), r.of.store, {}});
    at->results.push_back(&r);
  }
  return rows;
}

double median_of(const row& r, const std::function<double(const case_result&)>& figure) {
  std::vector<double> values;
  for (const case_result* one : r.results) values.push_back(figure(*one));
  return bench::median(values);
}

double throughput_of(const row& r) {
  return median_of(r, [](const case_result& c) { return c.operations_per_s(); });
}

// Of the throughput: the distance of the extremes, in % of the median.
double spread_of(const row& r) {
  const auto by = [](const case_result* a, const case_result* b) {
    return a->operations_per_s() < b->operations_per_s();
  };
  const auto [least, most] = std::ranges::minmax_element(r.results, by);
  return ((*most)->operations_per_s() - (*least)->operations_per_s()) / throughput_of(r) * 100;
}

std::string microseconds(double ns) { return fmt::format("{:.1f}", ns / 1000); }

cells cells_of(const row& r, const std::vector<row>& all, const std::string& baseline) {
  const case_result& first = *r.results.front();
  if (first.opening)
    return {r.what,
            r.store,
            "-",
            "-",
            microseconds(median_of(r, [](const case_result& c) { return c.opening->first_read_ns; })),
            microseconds(median_of(r, [](const case_result& c) { return c.opening->complete_ns; })),
            "-",
            "-",
            "-",
            "-",
            "-"};
  const auto other = std::ranges::find_if(all, [&](const row& o) { return o.what == r.what && o.store == baseline; });
  const bool compares = other != all.end() && throughput_of(*other) > 0;
  const auto latency = [&](auto member) {
    return microseconds(median_of(
        r, [&](const case_result& c) { return c.latency ? static_cast<double>((*c.latency).*member) : 0.0; }));
  };
  return {
      r.what,
      r.store,
      fmt::format("{:.0f}", throughput_of(r)),
      fmt::format("{:.0f}", throughput_of(r) * static_cast<double>(first.what.size) / 1e6),
      latency(&latency_figures::p50),
      latency(&latency_figures::p99),
      first.cpu_ns ? fmt::format("{:.2f}", median_of(r, [](const case_result& c) { return *c.cpu_ns; }) / 1000) : "-",
      first.host_amplification()
          ? fmt::format("{:.3f}", median_of(r, [](const case_result& c) { return c.host_amplification().value_or(0); }))
          : "-",
      first.device_amplification
          ? fmt::format("{:.2f}", median_of(r, [](const case_result& c) { return c.device_amplification.value_or(0); }))
          : "-",
      compares ? fmt::format("{:.2f}x", throughput_of(r) / throughput_of(*other)) : "-",
      fmt::format("{:.0f} %", spread_of(r))};
}

}  // namespace

std::string results_table(const run_report& report, const std::string& baseline) {
  const std::vector<row> rows = rows_of(report);
  std::vector<cells> table = {{"case", "store", "operations/s", "MB/s", "p50 us", "p99 us", "CPU us", "host WA",
                               "drive WA", "of " + baseline, "spread"}};
  for (const row& r : rows) table.push_back(cells_of(r, rows, baseline));
  std::string text = aligned(table);
  if (std::ranges::any_of(rows, [](const row& r) { return r.results.front()->opening.has_value(); }))
    text += "phase open: p50 is the time to the first read, p99 the time until all is rebuilt\n";
  for (const case_result& r : report.results)
    if (r.medium && r.operations != 0 && r.repetition == 1)
      text += fmt::format("{} {}: {:.2f} lines, {:.2f} flushes, {:.2f} fences, {:.2f} lines read per operation\n",
                          text_of(r.what), r.of.store,
                          static_cast<double>(r.medium->lines) / static_cast<double>(r.operations),
                          static_cast<double>(r.medium->flushes) / static_cast<double>(r.operations),
                          static_cast<double>(r.medium->fences) / static_cast<double>(r.operations),
                          static_cast<double>(r.medium->lines_read) / static_cast<double>(r.operations));
  std::uint64_t verified = 0;
  for (const case_result& r : report.results) verified += r.verified;
  for (const final_check& f : report.at_end) verified += f.verified;
  text += fmt::format("{} reads checked, {} wrong\n", verified, report.wrong_answers());
  for (const std::string& remark : report.remarks) text += "note: " + remark + '\n';
  return text;
}

}  // namespace pmlab::store_bench
