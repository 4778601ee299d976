// A histogram as text that HdrHistogram's plotters read.
#pragma once

#include "bench/workload/latency_histogram.hpp"

#include <string>

namespace pmlab::workload {

// The percentile distribution (.hgrm) of the recorded values, in nanoseconds: a line for each of five steps to half of
// the distance from 100 %, then mean, deviation and maximum.
[[nodiscard]] std::string percentile_distribution(const latency_histogram& histogram);

}  // namespace pmlab::workload
