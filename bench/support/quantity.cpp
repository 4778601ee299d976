// Numbers as people write them on a command line.
#include "bench/support/quantity.hpp"
#include <pmlab/base/error.hpp>

#include <array>
#include <limits>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace pmlab::bench {
namespace {

double positive(std::string_view text, const std::string& what, const std::string& examples,
                double most = std::numeric_limits<double>::max()) {
  const auto [number, suffix] = detail::split_number(text, what, examples);
  if (!suffix.empty()) throw error(fmt::format("{} '{}' is not a number", what, text), examples);
  if (number <= 0) throw error(fmt::format("{} '{}' is too small", what, text), examples);
  if (number > most) throw error(fmt::format("{} '{}' is too large", what, text), fmt::format("give at most {}", most));
  return number;
}

}  // namespace

double parse_seconds(std::string_view text, const std::string& what) {
  constexpr double thirty_years = 1e9;
  return positive(text, what, "write seconds, like 10 or 0.5", thirty_years);
}

double parse_seconds_or_none(std::string_view text, const std::string& what) {
  return text == "0" ? 0 : parse_seconds(text, what);
}

double parse_emulation_scale(std::string_view text) {
  constexpr double most = 10'000;
  return positive(text, "--emulation-scale", "write a positive number, like 2 or 1.5", most);
}

double parse_factor(std::string_view text, const std::string& what) {
  return positive(text, what, "write a positive number, like 2 or 1.5");
}

std::string short_count(std::uint64_t count) {
  constexpr std::array<std::string_view, 4> units = {"", "k", "M", "G"};
  std::size_t unit = 0;
  while (unit + 1 < units.size() && count != 0 && count % 1000 == 0) {
    count /= 1000;
    ++unit;
  }
  return fmt::format("{}{}", count, units[unit]);
}

std::string readable_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> units = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < units.size(); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace pmlab::bench
