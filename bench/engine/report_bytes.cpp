#include "bench/engine/report_bytes.hpp"
#include "bench/support/part_bytes.hpp"

#include <utility>

namespace pmlab::bench {
namespace {

// `with` each member, in the same order in both directions. A member that is added and not named here does not compile.
template <class Result, class With>
void each_part_of_result(Result& r, With&& with) {
  auto& [index, medium, threads, hosts, coherence, phase, repeat, operations, seconds, throughput, latency, accesses,
         persists, media_bytes, between_hosts, persistence, measured_under, space, entries, restart, layer, wrong,
         cpu_cache_bytes, intervals, distribution, cpu, modules, driver_ns, huge_page_share, invalid] = r;
  with(index, medium, threads, hosts, coherence, phase, repeat, operations, seconds, throughput, latency, accesses,
       persists, media_bytes, between_hosts, persistence, measured_under, space, entries, restart, layer, wrong,
       cpu_cache_bytes, intervals, distribution, cpu, modules, driver_ns, huge_page_share, invalid);
}
template <class Skipped, class With>
void each_part_of_skipped(Skipped& s, With&& with) {
  auto& [index, threads, phase, reason] = s;
  with(index, threads, phase, reason);
}
template <class Report, class With>
void each_part_of_report(Report& r, With&& with) {
  auto& [results, skipped, clock_of, remarks, first_wrong, failure] = r;
  with(results, skipped, clock_of, remarks, first_wrong, failure);
}

}  // namespace

void each_part(const phase_result& r, part_writer& to) { each_part_of_result(r, to); }
void each_part(phase_result& r, part_reader& from) { each_part_of_result(r, from); }
void each_part(const skipped_phase& s, part_writer& to) { each_part_of_skipped(s, to); }
void each_part(skipped_phase& s, part_reader& from) { each_part_of_skipped(s, from); }

std::string bytes_of(const bench_report& report) {
  part_writer to;
  each_part_of_report(report, to);
  return std::move(to.bytes);
}

bench_report report_of(std::string_view bytes) {
  bench_report report;
  part_reader from(bytes);
  each_part_of_report(report, from);
  return report;
}

}  // namespace pmlab::bench
