// Numbers in the texts that users write and read: independent of the locale.
#pragma once

#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace pmlab::workload {

// The finite number that is the whole of `text`: "0.99", ".9", "1e-3". No sign '+', no spaces.
[[nodiscard]] inline std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || rest != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

// The shortest text that parse_number reads back as `value`.
[[nodiscard]] inline std::string format_number(double value) {
  char buffer[32];
  const std::to_chars_result end = std::to_chars(buffer, buffer + sizeof buffer, value);
  return {buffer, end.ptr};
}

}  // namespace pmlab::workload
