// A value of a suite's file, read as the type of its field.
#include "microbench/memory/suite_value.hpp"
#include <pmlab/base/error.hpp>
#include "bench/support/quantity.hpp"
#include "bench/support/toml_file.hpp"

#include <optional>

#include <fmt/format.h>

namespace pmlab::microbench {

std::string suite_value::place() const { return bench::place_of(file_, node_); }

void suite_value::refuse(const std::string& why, const std::string& remedy) const {
  throw error(fmt::format("{}: key '{}' {}", place(), key_, why), remedy);
}

std::string suite_value::text() const {
  const std::optional<std::string> value = node_.value_exact<std::string>();
  if (!value) refuse("is not a text", "write it in quotes");
  return *value;
}

bool suite_value::flag() const {
  const std::optional<bool> value = node_.value_exact<bool>();
  if (!value) refuse("is neither true nor false", "write true or false, without quotes");
  return *value;
}

double suite_value::figure() const {
  const std::optional<double> value = node_.is_number() ? node_.value<double>() : std::nullopt;
  if (!value) refuse("is not a number", "write a number, without quotes or unit");
  return *value;
}

double suite_value::number() const {
  const double value = figure();
  if (!(value >= 0 && value < 1e9)) refuse(fmt::format("is out of range: {}", value), "give a number of 0 or more");
  return value;
}

std::uint64_t suite_value::count(std::uint64_t least, std::uint64_t most) const {
  const std::optional<std::int64_t> value = node_.value_exact<std::int64_t>();
  if (!value) refuse("is not a whole number", "write a whole number, without quotes");
  if (*value < 0 || static_cast<std::uint64_t>(*value) < least || static_cast<std::uint64_t>(*value) > most)
    refuse(fmt::format("is out of range: {}", *value), fmt::format("give {} to {}", least, most));
  return static_cast<std::uint64_t>(*value);
}

int suite_value::node() const { return static_cast<int>(count(0, 1023)); }

std::uint64_t suite_value::bytes() const {
  if (node_.is_string()) return bench::parse_bytes(text(), fmt::format("{}: key '{}'", place(), key_));
  return count(0, std::uint64_t{1} << 50);
}

std::string suite_value::as_written() const {
  if (const auto text = node_.value_exact<std::string>()) return *text;
  if (const auto whole = node_.value_exact<std::int64_t>()) return fmt::format("{}", *whole);
  if (const auto flag = node_.value_exact<bool>()) return *flag ? "true" : "false";
  if (const auto number = node_.value<double>()) return fmt::format("{}", *number);
  return "?";
}

}  // namespace pmlab::microbench
