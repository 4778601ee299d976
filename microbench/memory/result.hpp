// The result of measuring a case.
#pragma once

#include "microbench/memory/case.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pmlab::microbench {

// Latencies of accesses that were timed one by one, in nanoseconds, without the cost of timing. A percentile with too
// few samples (p99.999 needs 100,000) is empty.
struct latency_figures {
  std::uint64_t samples = 0;
  double mean = 0;
  double p50 = 0, p90 = 0;
  std::optional<double> p99, p99_9, p99_99, p99_999;
  double max = 0;
};

// One side of a case: all its threads that load, or all that store. Medians of the repetitions.
struct side_figures {
  unsigned threads = 0;
  std::uint64_t accesses = 0;              // accesses of one repetition, all threads
  double gib_per_s = 0;                    // bytes requested; the sum of the threads
  double ns_per_access = 0;                // time of one thread over its accesses
  std::optional<latency_figures> latency;  // where accesses were timed one by one
};

// The work of the device's media, if the medium counts it.
struct media_work {
  double read_amplification = 0;   // bytes that the media read, over those loaded; 0: nothing was loaded
  double write_amplification = 0;  // the same of writes
};

struct case_result {
  bench_case what;
  std::string medium;                  // that it ran on: "simulated:aep"
  std::string profile;                 // device profile; empty: real memory
  double scale = 1;                    // all times of an emulated device were multiplied by this
  std::optional<std::string> skipped;  // why it was not measured; nothing below means anything then

  std::optional<side_figures> reads;
  std::optional<side_figures> writes;  // read_after_persist: its steps as one access
  std::optional<media_work> media;     // work of the last repetition
  unsigned repetitions = 0;
  double spread_percent = 0;       // (max - min) / median of the measurements, over the repetitions
  bool steady = false;             // the spread is below the limit
  std::vector<double> values;      // the measurement of each repetition, in `unit`
  std::string unit;                // "ns" or "GiB/s"
  double timing_cost_ns = 0;       // cost of taking the time once; was subtracted from every sample
  std::string huge_pages;          // "2 MB pages", "4 KB pages", ...: from the kernel
  std::vector<std::string> notes;  // warnings about the figure

  // The measurement of the case, in `unit`: the median of `values`.
  [[nodiscard]] double value() const;
};

// The results of a suite, of a memory or of a drive.
template <class Result>
struct report_of {
  std::vector<Result> results;  // in the order of the suite
  std::vector<std::string> remarks;
  std::optional<std::string> failure;  // why the run ended early; earlier results stand
  double seconds = 0;                  // that the run took, by a clock on the wall
};

struct suite_report : report_of<case_result> {
  std::string prefetchers;     // "on", "off", "none", "unknown: ..."
  double emulation_scale = 0;  // all times of an emulated device were multiplied by this; 0: none was
};

}  // namespace pmlab::microbench
