// The results of a run as a table with commas.
#include "bench/engine/results_csv.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace pmlab::bench {
namespace {

// RFC 4180: a field with a comma, a quote or a line's end is quoted, with inner quotes doubled.
std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string all = "\"";
  for (const char c : text) all += c == '"' ? std::string("\"\"") : std::string(1, c);
  return all + '"';
}

using named_field = std::pair<std::string_view, std::string>;

std::vector<named_field> fields_of(const phase_result& r) {
  const auto number = [](const auto& value) { return fmt::format("{}", value); };
  const auto per_operation = [&]<class Counts>(const std::optional<Counts>& counts, std::uint64_t Counts::*part) {
    if (!counts || r.operations == 0) return std::string();
    return number(static_cast<double>((*counts).*part) / static_cast<double>(r.operations));
  };
  const auto of_modules = [&](std::size_t kind) {
    if (!r.modules || r.operations == 0) return std::string();
    return number(static_cast<double>(r.modules->counts[kind]) / static_cast<double>(r.operations));
  };
  const latency_summary& l = r.latency;
  return {{"index", csv_field(r.index)},
          {"medium", csv_field(r.medium)},
          {"threads", number(r.threads)},
          {"phase", csv_field(r.phase)},
          {"repeat", number(r.repeat)},
          {"operations", number(r.operations)},
          {"seconds", number(r.seconds)},
          {"throughput_ops_per_s", number(r.throughput)},
          {"latency_mean_ns", number(l.mean)},
          {"latency_p50_ns", number(l.p50)},
          {"latency_p90_ns", number(l.p90)},
          {"latency_p99_ns", number(l.p99)},
          {"latency_p99_9_ns", number(l.p99_9)},
          {"latency_p99_99_ns", number(l.p99_99)},
          {"latency_max_ns", number(l.max)},
          {"latency_samples", number(l.samples)},
          {"pm_lines_read", per_operation(r.accesses, &media::counts::lines_read)},
          {"device_lines_read", per_operation(r.accesses, &media::counts::device_lines_read)},
          {"device_lines_written", per_operation(r.accesses, &media::counts::device_lines_written)},
          {"flushes", per_operation(r.accesses, &media::counts::lines_flushed)},
          {"fences", per_operation(r.accesses, &media::counts::fences)},
          {"media_bytes_read", per_operation(r.media_bytes, &media_sums::bytes_read)},
          {"media_bytes_written", per_operation(r.media_bytes, &media_sums::bytes_written)},
          {"module_media_reads", of_modules(0)},
          {"module_media_writes", of_modules(1)},
          {"module_read_requests", of_modules(2)},
          {"module_write_requests", of_modules(3)},
          {"persistence", r.persistence ? std::string(to_string(*r.persistence)) : ""},
          {"pm_bytes_per_key", r.space ? number(r.space->pm) : ""},
          {"dram_bytes_per_key", r.space ? number(r.space->dram) : ""},
          {"entries", number(r.entries)},
          {"wrong_answers", r.wrong ? number(*r.wrong) : ""},
          {"invalid", csv_field(r.invalid)},
          {"hosts", number(r.hosts)},
          {"coherence", r.coherence},
          {"lines_refreshed", per_operation(r.between_hosts, &host_sums::refreshed)},
          {"lines_published", per_operation(r.between_hosts, &host_sums::published)},
          {"device_exchanges", per_operation(r.between_hosts, &host_sums::exchanges)},
          {"lines_fetched", per_operation(r.between_hosts, &host_sums::fetched)}};
}

std::string line_of(const std::vector<named_field>& fields, bool names) {
  std::string line;
  for (const auto& [name, value] : fields) {
    if (!line.empty()) line += ',';
    line += names ? std::string(name) : value;
  }
  return line + '\n';
}

}  // namespace

std::string results_to_csv(const bench_report& report) {
  std::string text = line_of(fields_of({}), true);
  for (const phase_result& r : report.results) text += line_of(fields_of(r), false);
  return text;
}

}  // namespace pmlab::bench
