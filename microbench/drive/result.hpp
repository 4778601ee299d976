// The result of measuring a case of a drive.
#pragma once

#include "bench/workload/latency_histogram.hpp"
#include "microbench/drive/case.hpp"
#include "microbench/drive/settling.hpp"
#include "microbench/memory/result.hpp"

#include <optional>
#include <string>
#include <vector>

namespace pmlab::drive {

// Medians of the repetitions.
struct case_result {
  drive_case what;
  std::optional<std::string> skipped;  // why it was not measured; nothing below means anything then
  std::vector<double> gib_per_s;       // bandwidth of each repetition
  double requests_per_s = 0;
  std::optional<double> cpu_ns;     // CPU time of this process for a request; nothing: the clock is virtual
  std::optional<settling> settled;  // nothing: it was measured at once
  workload::latency_histogram latencies;
  microbench::latency_figures latency;  // from submission until it counts as done; all repetitions together
  std::optional<double> fio_requests_per_s;
  std::optional<double> over_fio;       // our requests a second over fio's: the median of the pairs of repetitions
  std::optional<double> amplification;  // bytes that flash programmed for each byte written, where a model counts them
  double spread_percent = 0;            // (max - min) / median of the repetitions
  bool steady = false;                  // the spread is below the limit
  std::vector<std::string> notes;

  // GiB/s: the median.
  [[nodiscard]] double value() const;
};

using suite_report = microbench::report_of<case_result>;

}  // namespace pmlab::drive
