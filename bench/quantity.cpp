// Numbers as people write them on a command line.
#include <pmlab/base/error.hpp>
#include <pmlab/bench/quantity.hpp>

#include <array>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace pmlab::bench {
namespace {

struct number_and_suffix {
  double number;
  std::string suffix;
};

number_and_suffix split(std::string_view text, const std::string& what, const std::string& examples) {
  const std::string owned(text);
  char* end = nullptr;
  const double number = std::strtod(owned.c_str(), &end);
  // strtod also takes "inf", "nan" and hexadecimal numbers: no count looks like that.
  const bool decimal = owned.find_first_not_of("0123456789.eE+-kKMmGgTtiB") == std::string::npos;
  if (owned.empty() || end == owned.c_str() || !decimal || !std::isfinite(number))
    throw error(fmt::format("{} '{}' is not a number", what, text), examples);
  return {number, std::string(end)};
}

double power_of(std::string_view suffix, double unit) {
  constexpr std::string_view letters = "kmgt";
  if (suffix.empty()) return 1;
  const auto lower = static_cast<char>(suffix.front() | 0x20);
  const std::size_t at = letters.find(lower);
  return at == std::string_view::npos || suffix.size() != 1 ? 0 : std::pow(unit, static_cast<double>(at + 1));
}

std::uint64_t whole(double value, std::string_view text, const std::string& what, std::uint64_t least,
                    const std::string& examples) {
  constexpr double limit = 9.2e18;
  if (value < static_cast<double>(least))
    throw error(fmt::format("{} '{}' is too small", what, text), fmt::format("give at least {}", least));
  if (value > limit) throw error(fmt::format("{} '{}' is too large", what, text), "give less than 9.2e18");
  if (value != std::floor(value)) throw error(fmt::format("{} '{}' is not a whole number", what, text), examples);
  return static_cast<std::uint64_t>(value);
}

double positive(std::string_view text, const std::string& what, const std::string& examples) {
  const auto [number, suffix] = split(text, what, examples);
  if (!suffix.empty()) throw error(fmt::format("{} '{}' is not a number", what, text), examples);
  if (number <= 0) throw error(fmt::format("{} '{}' is too small", what, text), examples);
  return number;
}

}  // namespace

std::uint64_t parse_count(std::string_view text, const std::string& what, std::uint64_t least) {
  const std::string examples = "write it like 10M, 1k, 2e6 or 250000";
  const auto [number, suffix] = split(text, what, examples);
  const double unit = power_of(suffix, 1000);
  if (unit == 0) throw error(fmt::format("{} '{}' has an unknown unit '{}'", what, text, suffix), examples);
  return whole(number * unit, text, what, least, examples);
}

std::uint64_t parse_bytes(std::string_view text, const std::string& what) {
  const std::string examples = "write it like 512M, 2G or 2GiB";
  auto [number, suffix] = split(text, what, examples);
  if (suffix.ends_with("iB")) suffix.resize(suffix.size() - 2);
  if (suffix.ends_with("B")) suffix.resize(suffix.size() - 1);
  const double unit = power_of(suffix, 1024);
  if (unit == 0) throw error(fmt::format("{} '{}' has an unknown unit '{}'", what, text, suffix), examples);
  return whole(number * unit, text, what, 1, examples);
}

double parse_seconds(std::string_view text, const std::string& what) {
  return positive(text, what, "write seconds, like 10 or 0.5");
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
