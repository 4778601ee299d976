// From many numbers to few.
#include "microbench/memory/figures.hpp"
#include "bench/engine/summary.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace pmlab::microbench {
namespace {

double sum_of(std::span<const std::uint64_t> values) {
  return std::accumulate(values.begin(), values.end(), 0.0,
                         [](double sum, std::uint64_t v) { return sum + static_cast<double>(v); });
}

// Percentiles are in 1/100,000 of the samples: integers, which no rounding moves to the next sample.
constexpr std::uint64_t all_parts = 100'000;

double percentile(std::span<const std::uint64_t> sorted, std::uint64_t parts) {
  const std::uint64_t rank = (sorted.size() * parts + all_parts - 1) / all_parts;
  return static_cast<double>(sorted[std::max<std::uint64_t>(rank, 1) - 1]) / picoseconds_per_ns;
}

// Nothing if there are too few samples for it.
std::optional<double> rare(std::span<const std::uint64_t> sorted, std::uint64_t parts) {
  if (sorted.size() * (all_parts - parts) < all_parts) return std::nullopt;
  return percentile(sorted, parts);
}

}  // namespace

steadiness judge(std::span<const double> values, std::size_t window, double limit_percent) {
  if (values.empty()) return {};
  const std::span<const double> last = values.size() > window ? values.last(window) : values;
  const auto [least, most] = std::minmax_element(last.begin(), last.end());
  const double middle = bench::median({last.begin(), last.end()});
  const double spread = middle > 0 ? 100 * (*most - *least) / middle : 0;
  return {spread, values.size() >= window && spread < limit_percent};
}

latency_figures figures_of(std::vector<std::uint64_t>& picoseconds) {
  latency_figures f;
  f.samples = picoseconds.size();
  if (picoseconds.empty()) return f;
  std::sort(picoseconds.begin(), picoseconds.end());
  f.mean = sum_of(picoseconds) / static_cast<double>(picoseconds.size()) / picoseconds_per_ns;
  f.p50 = percentile(picoseconds, 50'000);
  f.p90 = percentile(picoseconds, 90'000);
  f.p99 = rare(picoseconds, 99'000);
  f.p99_9 = rare(picoseconds, 99'900);
  f.p99_99 = rare(picoseconds, 99'990);
  f.p99_999 = rare(picoseconds, 99'999);
  f.max = static_cast<double>(picoseconds.back()) / picoseconds_per_ns;
  return f;
}

double typical_ns(std::span<const std::uint64_t> sorted) {
  const std::span<const std::uint64_t> most = sorted.first(sorted.size() - sorted.size() / 1000);
  return sum_of(most) / static_cast<double>(most.size()) / picoseconds_per_ns;
}

}  // namespace pmlab::microbench
