#include "bench/stores/report_bytes.hpp"
#include "bench/support/part_bytes.hpp"

#include <concepts>
#include <type_traits>
#include <utility>

namespace pmlab::store_bench {
namespace {

// Const or not.
template <class Object, class Class>
concept is = std::same_as<std::remove_const_t<Object>, Class>;

template <class Measured, class With>
void each_part_of_measured(Measured& r, With& with) {
  using sums = std::conditional_t<std::is_const_v<Measured>, const amounts, amounts>;
  with(static_cast<sums&>(r), r.case_number, r.threads, r.repetition, r.time_ns, r.latency, r.read_latency,
       r.write_latency, r.scan_latency, r.cpu_ns, r.host_bytes, r.writes_to_drives, r.main, r.staging,
       r.flash_per_written, r.medium, r.statistics, r.opening);
}

}  // namespace

template <is<store_labels> Labels, class With>
void each_part(Labels& l, With& with) {
  auto& [store, container, medium, index, merge, ring] = l;
  with(store, container, medium, index, merge, ring);
}
template <is<pair_labels> Labels, class With>
void each_part(Labels& l, With& with) {
  auto& [store, medium, staging, place, memtable] = l;
  with(store, medium, staging, place, memtable);
}
template <is<case_result> Result, class With>
void each_part(Result& r, With& with) {
  each_part_of_measured(r, with);
  with(r.of, r.space);
}
template <is<pair_result> Result, class With>
void each_part(Result& r, With& with) {
  each_part_of_measured(r, with);
  with(r.of, r.after, r.space);
}
template <is<final_check> Check, class With>
void each_part(Check& c, With& with) {
  auto& [store, verified, wrong] = c;
  with(store, verified, wrong);
}
template <class Report, class With>
requires is<Report, run_report> || is<Report, pair_report>
void each_part(Report& r, With& with) {
  auto& [results, at_end, first_wrong, remarks, failure, seconds] = r;
  with(results, at_end, first_wrong, remarks, failure, seconds);
}
template <class Outcome, class With>
requires is<Outcome, outcome<run_report>> || is<Outcome, outcome<pair_report>>
void each_part(Outcome& o, With& with) {
  auto& [report, scale, way] = o;
  with(report, scale, way);
}

namespace {

template <class Outcome>
std::string written(const Outcome& measured) {
  bench::part_writer to;
  to(measured);
  return std::move(to.bytes);
}

template <class Report, class Options>
outcome<Report> read(std::string_view bytes, const Options& options) {
  outcome<Report> measured;
  bench::part_reader from(bytes);
  from(measured);
  for (auto& r : measured.report.results) r.what = options.cases.at(r.case_number);
  return measured;
}

}  // namespace

std::string bytes_of(const outcome<run_report>& measured) { return written(measured); }
std::string bytes_of(const outcome<pair_report>& measured) { return written(measured); }

outcome<run_report> outcome_of(std::string_view bytes, const run_options& options) {
  return read<run_report>(bytes, options);
}
outcome<pair_report> outcome_of(std::string_view bytes, const pair_run_options& options) {
  return read<pair_report>(bytes, options);
}

}  // namespace pmlab::store_bench
