// Names of any bytes as text, and back.
#include "bench/support/printable.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

#include <fmt/format.h>

namespace pmlab {
namespace {

// The bytes of the UTF-8 character at the front; 0: there is none.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [text](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const unsigned first = byte(0), second = byte(1);
  std::size_t bytes = 0;
  if (first < 0x80) bytes = 1;
  if (first >= 0xc2 && first <= 0xdf) bytes = 2;
  if (first >= 0xe0 && first <= 0xef) bytes = 3;
  if (first >= 0xf0 && first <= 0xf4) bytes = 4;
  for (std::size_t i = 1; i < bytes; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  const bool has_shorter_form = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool is_surrogate = first == 0xed && second >= 0xa0;
  const bool is_beyond_all = first == 0xf4 && second >= 0x90;
  return has_shorter_form || is_surrogate || is_beyond_all ? 0 : bytes;
}

// With \xNN for what cannot be shown, and `backslash` for each backslash.
std::string shown(std::string_view name, std::string_view backslash) {
  std::string text;
  while (!name.empty()) {
    const std::size_t bytes = character_bytes(name);
    const auto first = static_cast<unsigned char>(name.front());
    if (bytes == 0 || first < ' ' || first == 0x7f)
      text += fmt::format("\\x{:02x}", first);
    else
      text += first == '\\' ? backslash : name.substr(0, bytes);
    name.remove_prefix(std::max(bytes, std::size_t{1}));
  }
  return text;
}

}  // namespace

std::string printable(std::string_view name) {
  std::string as_it_is = shown(name, "\\");
  return as_it_is == name && name_of_printable(name) == name ? as_it_is : shown(name, "\\\\");
}

std::string one_line(std::string_view text) { return shown(text, "\\"); }

std::string name_of_printable(std::string_view text) {
  constexpr std::size_t escaped_byte = 4;
  std::string name;
  while (!text.empty()) {
    std::size_t bytes = 1;
    char c = text.front();
    if (text.starts_with("\\\\")) {
      bytes = 2;
    } else if (const auto byte = byte_of_digits(text.substr(std::min(text.size(), std::size_t{2}), 2));
               byte && text.starts_with("\\x")) {
      bytes = escaped_byte;
      c = *byte;
    }
    name += c;
    text.remove_prefix(bytes);
  }
  return name;
}

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t character = character_bytes(bytes);
    if (character == 0) return false;
    bytes.remove_prefix(character);
  }
  return true;
}

std::optional<char> byte_of_digits(std::string_view digits) {
  constexpr int hexadecimal = 16;
  unsigned byte = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, hexadecimal);
  if (digits.size() != 2 || failed != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return static_cast<char>(byte);
}

}  // namespace pmlab
