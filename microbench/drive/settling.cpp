#include "microbench/drive/settling.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pmlab::drive {

bool is_steady(std::span<const double> rates) noexcept {
  if (rates.size() < rounds_compared) return false;
  const auto last = rates.last(rounds_compared);
  constexpr auto count = static_cast<double>(rounds_compared);
  const double mean = std::accumulate(last.begin(), last.end(), 0.0) / count;
  const auto [least, most] = std::ranges::minmax(last);
  // Least squares over the rounds' numbers, which have their mean in the middle.
  constexpr double middle = (count - 1) / 2;
  double products = 0;
  double squares = 0;
  for (std::size_t i = 0; i < last.size(); ++i) {
    const double x = static_cast<double>(i) - middle;
    products += x * last[i];
    squares += x * x;
  }
  const double change = std::abs(products / squares) * (count - 1);
  return most - least <= most_range * mean && change <= most_slope * mean;
}

}  // namespace pmlab::drive
