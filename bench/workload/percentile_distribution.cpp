// A histogram as text that HdrHistogram's plotters read.
#include "bench/workload/percentile_distribution.hpp"

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace pmlab::workload {
namespace {

constexpr double steps_per_half = 5;

// The next percentile: of the half of the remaining distance that `percent` lies in, one step further.
double next_percent(double percent) {
  const double halves = std::floor(std::log2(100 / (100 - percent))) + 1;
  return percent + 100 / (steps_per_half * std::exp2(halves));
}

double deviation(const latency_histogram& histogram) {
  double squares = 0;
  const double mean = histogram.mean();
  histogram.for_each([&](std::uint64_t value, std::uint64_t count) {
    const double distance = static_cast<double>(value) - mean;
    squares += distance * distance * static_cast<double>(count);
  });
  return histogram.count() == 0 ? 0 : std::sqrt(squares / static_cast<double>(histogram.count()));
}

}  // namespace

std::string percentile_distribution(const latency_histogram& histogram) {
  std::string text =
      fmt::format("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
  const auto total = static_cast<double>(histogram.count());
  std::uint64_t counted = 0;
  double percent = 0;
  histogram.for_each([&](std::uint64_t value, std::uint64_t count) {
    counted += count;
    const double reached = 100 * static_cast<double>(counted) / total;
    if (counted == histogram.count()) return;
    while (percent <= reached) {
      text += fmt::format("{:12.3f} {:14.12f} {:10} {:14.2f}\n", static_cast<double>(value), percent / 100, counted,
                          100 / (100 - percent));
      percent = next_percent(percent);
    }
  });
  if (histogram.count() != 0)
    text += fmt::format("{:12.3f} {:14.12f} {:10}\n", static_cast<double>(histogram.max()), 1.0, histogram.count());
  text += fmt::format("#[Mean    = {:12.3f}, StdDeviation   = {:12.3f}]\n", histogram.mean(), deviation(histogram));
  text += fmt::format("#[Max     = {:12.3f}, Total count    = {:12}]\n", static_cast<double>(histogram.max()),
                      histogram.count());
  text += fmt::format("#[Buckets = {:12}, SubBuckets     = {:12}]\n", 64 - latency_histogram::fine_bits + 1,
                      1 << latency_histogram::fine_bits);
  return text;
}

}  // namespace pmlab::workload
