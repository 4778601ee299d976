// Counts and sizes as people write them: 10M, 1k, 2e6, 4GiB.
#pragma once

#include <pmlab/base/error.hpp>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace pmlab {

namespace detail {

struct number_and_suffix {
  double number;
  std::string suffix;
};

[[nodiscard]] inline std::string quoted(const std::string& what, std::string_view text) {
  return what + " '" + std::string(text) + "'";
}

// Throws pmlab::error, with `examples` as its remedy, if the text does not begin with a number.
[[nodiscard]] inline number_and_suffix split_number(std::string_view text, const std::string& what,
                                                    const std::string& examples) {
  const std::string owned(text);
  char* end = nullptr;
  const int before = std::exchange(errno, 0);
  const double number = std::strtod(owned.c_str(), &end);
  const bool fits = std::exchange(errno, before) != ERANGE;
  // strtod also accepts "inf", "nan" and hexadecimal numbers: these are not valid counts.
  const bool decimal = owned.find_first_not_of("0123456789.eE+-kKMmGgTtiB") == std::string::npos;
  if (owned.empty() || end == owned.c_str() || !decimal) throw error(quoted(what, text) + " is not a number", examples);
  if (!fits) throw error(quoted(what, text) + (std::abs(number) > 1 ? " is too large" : " is too small"), examples);
  return {number, std::string(end)};
}

// `unit` to the power that k, M, G or T stands for; 0: the suffix is none of them.
[[nodiscard]] inline double power_of(std::string_view suffix, double unit) {
  constexpr std::string_view letters = "kmgt";
  if (suffix.empty()) return 1;
  const auto lower = static_cast<char>(suffix.front() | 0x20);
  const std::size_t at = letters.find(lower);
  return at == std::string_view::npos || suffix.size() != 1 ? 0 : std::pow(unit, static_cast<double>(at + 1));
}

// Digits alone, of which every one counts: doubles have those of 2^53. std::nullopt: something else, or beyond 2^64.
[[nodiscard]] inline std::optional<std::uint64_t> exact_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

[[nodiscard]] inline std::uint64_t whole_number(double value, std::string_view text, const std::string& what,
                                                std::uint64_t least, const std::string& examples) {
  constexpr double limit = 9.2e18;
  if (value < static_cast<double>(least))
    throw error(quoted(what, text) + " is too small", "give at least " + std::to_string(least));
  if (value > limit) throw error(quoted(what, text) + " is too large", "give less than 9.2e18");
  if (value != std::floor(value)) throw error(quoted(what, text) + " is not a whole number", examples);
  return exact_number(text).value_or(static_cast<std::uint64_t>(value));
}

}  // namespace detail

// A count: digits, or a decimal number, with k, M, G or T for thousands (10^3 each). `what` names the option in the
// error. Throws pmlab::error if the text is no number, not whole, below `least`, or beyond 2^63.
[[nodiscard]] inline std::uint64_t parse_count(std::string_view text, const std::string& what,
                                               std::uint64_t least = 1) {
  const std::string examples = "write it like 10M, 1k, 2e6 or 250000";
  const auto [number, suffix] = detail::split_number(text, what, examples);
  const double unit = detail::power_of(suffix, 1000);
  if (unit == 0) throw error(detail::quoted(what, text) + " has an unknown unit '" + suffix + "'", examples);
  return detail::whole_number(number * unit, text, what, least, examples);
}

// A size in bytes: as above, but K, M, G and T are 1024 each, with or without "B" or "iB".
[[nodiscard]] inline std::uint64_t parse_bytes(std::string_view text, const std::string& what) {
  const std::string examples = "write it like 512M, 2G or 2GiB";
  auto [number, suffix] = detail::split_number(text, what, examples);
  if (suffix.ends_with("iB")) suffix.resize(suffix.size() - 2);
  if (suffix.ends_with("B")) suffix.resize(suffix.size() - 1);
  const double unit = detail::power_of(suffix, 1024);
  if (unit == 0) throw error(detail::quoted(what, text) + " has an unknown unit '" + suffix + "'", examples);
  return detail::whole_number(number * unit, text, what, 1, examples);
}

}  // namespace pmlab
