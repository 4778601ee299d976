// Measures the cases of a suite on a device.
#pragma once

#include "bench/support/progress.hpp"
#include "microbench/drive/result.hpp"
#include "microbench/drive/suite.hpp"
#include "microbench/drive/target.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace pmlab::drive {

struct run_options {
  device_spec device;
  std::uint64_t bytes = 0;  // bytes of a new device; at most so many of an existing one are used
  double spread_percent = 10;
  double settle_seconds = 0;  // most seconds of writes before a case of writes, until the rate is steady; 0: none
  bool overwrite = false;
  std::optional<std::string> fio;  // its path; nothing: no comparison
};

// One repetition on a queue of the case's depth: a new request for each that ends, as fio does.
struct repetition {
  std::uint64_t requests = 0;
  std::uint64_t time = 0;                // picoseconds
  double cpu_ns = 0;                     // CPU time of this process, for all requests
  std::vector<std::uint64_t> latencies;  // picoseconds
};

// For `time` picoseconds of the target's clock, after a warm-up of a tenth of it; at least 64 requests, unless that
// takes ten times as long. On the first `bytes` of the device. Throws pmlab::error: the device fails a request.
[[nodiscard]] repetition repeat_case(const drive_case& c, target& on, std::uint64_t bytes, std::uint64_t time,
                                     std::uint64_t seed);

// All cases. Throws pmlab::error where there is no device to measure; an error in the middle ends the run, and the
// report has the results so far.
[[nodiscard]] suite_report run_suite(const run_options& options, const suite& s, target& on, bench::progress& shown);

}  // namespace pmlab::drive
