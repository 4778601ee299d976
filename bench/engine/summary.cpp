// From the results of all repeats to one row for each index, number of threads and phase.
#include "bench/engine/summary.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::bench {
namespace {

using group = std::vector<const phase_result*>;

// The distinct values of `field`, in the order in which they first come.
template <class Field>
auto distinct(const std::vector<phase_result>& results, Field&& field) {
  std::vector<std::decay_t<decltype(field(results.front()))>> values;
  for (const phase_result& r : results)
    if (std::find(values.begin(), values.end(), field(r)) == values.end()) values.push_back(field(r));
  return values;
}

template <class Field>
double median_of(const group& repeats, Field&& field) {
  std::vector<double> values;
  for (const phase_result* r : repeats) values.push_back(field(*r));
  return median(std::move(values));
}

template <class Value>
void add(std::optional<Value>& sum, const std::optional<Value>& more) {
  if (!more) return;
  if (!sum) sum.emplace();
  *sum += *more;
}

summary_row row_of(const group& repeats) {
  const phase_result& last = *repeats.back();
  summary_row row;
  row.index = last.index;
  row.medium = last.medium;
  row.threads = last.threads;
  row.hosts = last.hosts;
  row.phase = last.phase;
  row.persistence = last.persistence;
  row.measured_under = last.measured_under;
  row.repeats = repeats.size();
  row.throughput = median_of(repeats, [](const phase_result& r) { return r.throughput; });
  const auto [lowest, highest] =
      std::minmax_element(repeats.begin(), repeats.end(),
                          [](const phase_result* a, const phase_result* b) { return a->throughput < b->throughput; });
  if (row.throughput > 0) row.spread = ((*highest)->throughput - (*lowest)->throughput) / row.throughput;
  using latencies = latency_summary;
  for (const auto part : {&latencies::mean, &latencies::p50, &latencies::p90, &latencies::p99, &latencies::p99_9,
                          &latencies::p99_99, &latencies::max})
    row.latency.*part = median_of(repeats, [part](const phase_result& r) { return r.latency.*part; });
  row.space = repeats.front()->space;
  row.driver_ns = last.driver_ns;
  if (last.huge_page_share)
    row.huge_page_share = median_of(repeats, [](const phase_result& r) { return r.huge_page_share.value_or(0); });
  for (const phase_result* r : repeats) {
    row.operations += r->operations;
    row.latency.samples += r->latency.samples;
    add(row.accesses, r->accesses);
    add(row.persists, r->persists);
    add(row.media_bytes, r->media_bytes);
    add(row.between_hosts, r->between_hosts);
    add(row.modules, r->modules);
    add(row.wrong, r->wrong);
    if (row.invalid.empty()) row.invalid = r->invalid;
  }
  return row;
}

// To the baseline under the same persistence, or to the only one that there is.
void add_ratios(std::span<summary_row> rows, const std::string& baseline) {
  for (summary_row& row : rows) {
    const summary_row* base = nullptr;
    for (const summary_row& one : rows)
      if (one.index == baseline && (base == nullptr || one.measured_under == row.measured_under)) base = &one;
    if (base != nullptr && base->throughput != 0) row.ratio = row.throughput / base->throughput;
  }
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<summary_row> summarize(const std::vector<phase_result>& results, const std::string& baseline) {
  std::vector<summary_row> rows;
  const auto indexes = distinct(results, [](const phase_result& r) { return r.index; });
  const auto phases = distinct(results, [](const phase_result& r) { return r.phase; });
  const auto domains = distinct(results, [](const phase_result& r) { return r.measured_under; });
  for (const auto& [hosts, threads] :
       distinct(results, [](const phase_result& r) { return std::pair(r.hosts, r.threads); }))
    for (const std::string& phase : phases) {
      const std::size_t first = rows.size();
      for (const auto& domain : domains)
        for (const std::string& index : indexes) {
          group repeats;
          for (const phase_result& r : results)
            if (r.hosts == hosts && r.threads == threads && r.phase == phase && r.index == index &&
                r.measured_under == domain)
              repeats.push_back(&r);
          if (!repeats.empty()) rows.push_back(row_of(repeats));
        }
      add_ratios(std::span(rows).subspan(first), baseline);
    }
  return rows;
}

}  // namespace pmlab::bench
