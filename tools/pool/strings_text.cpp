// Entries of string indexes as text.
#include "tools/pool/strings_text.hpp"
#include <pmlab/strings/values.hpp>
#include "bench/support/printable.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

#include <fmt/format.h>

namespace pmlab::pool {
namespace {

constexpr std::string_view blanks = " \t";

std::string_view next_part(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
  const std::string_view part = line.substr(0, line.find_first_of(blanks));
  line.remove_prefix(part.size());
  return part;
}

bool is_plain(char c) { return c > ' ' && c <= '~' && c != '%' && c != '#'; }

}  // namespace

std::string percent_encoded(std::string_view bytes) {
  if (bytes.empty()) return "%";
  std::string text;
  for (const char c : bytes)
    text += is_plain(c) ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return text;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  if (text == "%") return std::string();
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      if (!is_plain(text[i])) return std::nullopt;
      bytes += text[i];
      continue;
    }
    constexpr std::size_t digits = 2;
    const std::optional<char> byte = byte_of_digits(text.substr(i + 1, digits));
    if (!byte) return std::nullopt;
    bytes += *byte;
    i += digits;
  }
  return bytes.empty() ? std::nullopt : std::optional(bytes);
}

std::string line_of(const string_entries::value_type& entry, std::string_view values) {
  if (values != strings::word_values::name) return percent_encoded(entry.first) + ' ' + percent_encoded(entry.second);
  return fmt::format("{} {}", percent_encoded(entry.first), word_of_bytes(entry.second));
}

std::optional<string_entries::value_type> entry_of(std::string_view line, std::string_view values) {
  const std::optional<std::string> key = percent_decoded(next_part(line));
  const std::string_view rest = next_part(line);
  if (!key || line.find_first_not_of(blanks) != std::string_view::npos) return std::nullopt;
  if (values != strings::word_values::name) {
    std::optional<std::string> value = percent_decoded(rest);
    if (!value) return std::nullopt;
    return std::pair(*key, *std::move(value));
  }
  std::uint64_t word = 0;
  const auto [end, failed] = std::from_chars(rest.data(), rest.data() + rest.size(), word);
  if (failed != std::errc() || end != rest.data() + rest.size()) return std::nullopt;
  return std::pair(*key, bytes_of_word(word));
}

}  // namespace pmlab::pool
