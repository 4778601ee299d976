#include "bench/input/text_encoding.hpp"
#include <pmlab/base/error.hpp>

#include <algorithm>

namespace pmlab::input {
namespace {

using namespace std::string_view_literals;

// Without a mark: line ends of four bytes, of which the others are zero, as are the upper half of all characters.
std::string_view unmarked_utf32(std::string_view start) {
  const auto halves_are_zero = [start](std::size_t first) {
    for (std::size_t i = 0; i < start.size(); ++i)
      if (i % 4 / 2 == first / 2 && start[i] != '\0') return false;
    return true;
  };
  for (std::size_t i = 0; i + 4 <= start.size(); i += 4) {
    if (start.substr(i, 4) == "\n\0\0\0"sv && halves_are_zero(2)) return "UTF-32LE";
    if (start.substr(i, 4) == "\0\0\0\n"sv && halves_are_zero(0)) return "UTF-32BE";
  }
  return {};
}

// Without a mark: line ends of two bytes, and every second byte is zero. Empty: it is another encoding.
std::string_view unmarked_utf16(std::string_view start) {
  const auto second_bytes_are_zero = [start](std::size_t first) {
    for (std::size_t i = first; i < start.size(); i += 2)
      if (start[i] != '\0') return false;
    return true;
  };
  if (start.size() < 4) return {};
  const std::string_view some = start.substr(0, start.size() / 2 * 2);
  for (std::size_t i = 0; i + 1 < some.size(); i += 2) {
    if (some.substr(i, 2) == "\n\0"sv && second_bytes_are_zero(1)) return "UTF-16LE";
    if (some.substr(i, 2) == "\0\n"sv && second_bytes_are_zero(0)) return "UTF-16BE";
  }
  return {};
}

std::string_view wide_encoding(std::string_view start) {
  // UTF-32 first: its mark begins with that of UTF-16.
  if (start.starts_with("\xff\xfe\0\0"sv) || start.starts_with("\0\0\xfe\xff"sv)) return "UTF-32";
  if (start.starts_with("\xff\xfe"sv) || start.starts_with("\xfe\xff"sv)) return "UTF-16";
  if (const std::string_view found = unmarked_utf32(start); !found.empty()) return found;
  return unmarked_utf16(start);
}

}  // namespace

std::size_t byte_order_mark(std::string_view start, const std::string& name) {
  constexpr std::string_view utf8_mark = "\xef\xbb\xbf";
  if (const std::string_view wide = wide_encoding(start); !wide.empty())
    throw error(name + " is a text in " + std::string(wide),
                "convert it: iconv -f " + std::string(wide) + " -t UTF-8 FILE > NEW");
  return start.starts_with(utf8_mark) ? utf8_mark.size() : 0;
}

bool is_binary(std::string_view start) noexcept {
  constexpr std::size_t some = 4096;
  return std::any_of(
      start.begin(), start.begin() + static_cast<std::ptrdiff_t>(std::min(some, start.size())),
      [](char c) { return static_cast<unsigned char>(c) < ' ' && "\t\n\r\f\v"sv.find(c) == std::string_view::npos; });
}

}  // namespace pmlab::input
