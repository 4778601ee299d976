// One line of a trace. trace.hpp shows the forms.
#pragma once

#include "bench/workload/operation.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace pmlab::workload::detail {

// Thrown for a line that begins like an operation and is none. what(): the expected form.
class malformed_line : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct trace_keyword {
  std::string_view text;  // with the space behind it
  operation_kind kind;
};

// The keyword at the beginning of the line; nothing if it is not an operation.
[[nodiscard]] inline std::optional<trace_keyword> keyword_of(std::string_view line) noexcept {
  if (line.empty()) return std::nullopt;
  trace_keyword candidate;
  switch (line.front()) {
    case 'R': candidate = {"READ ", operation_kind::read}; break;
    case 'U': candidate = {"UPDATE ", operation_kind::update}; break;
    case 'I': candidate = {"INSERT ", operation_kind::insert}; break;
    case 'S': candidate = {"SCAN ", operation_kind::scan}; break;
    case 'D': candidate = {"DELETE ", operation_kind::erase}; break;
    default: return std::nullopt;
  }
  if (!line.starts_with(candidate.text)) return std::nullopt;
  return candidate;
}

// Parses a decimal number at the front of `text` and removes it. Nothing if there is no digit or the number is more
// than `most`.
[[nodiscard]] inline std::optional<std::uint64_t> take_number(std::string_view& text, std::uint64_t most) noexcept {
  std::uint64_t number = 0;
  std::size_t length = 0;
  for (; length < text.size(); ++length) {
    const auto digit = static_cast<unsigned>(text[length]) - static_cast<unsigned>('0');
    if (digit > 9) break;
    if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, digit, &number))
      return std::nullopt;
  }
  if (length == 0 || number > most) return std::nullopt;
  text.remove_prefix(length);
  return number;
}

// The operation of a line (without its end), or nothing if the line is of another kind. `ended`: the line had an end,
// so that nothing of it can be missing. Gives no value. Throws malformed_line.
[[nodiscard]] inline std::optional<operation> parse_trace_line(std::string_view line, bool ended) {
  const std::optional<trace_keyword> keyword = keyword_of(line);
  if (!keyword) return std::nullopt;
  std::string_view rest = line.substr(keyword->text.size());

  const std::size_t name = rest.find_first_not_of(' ');
  if (name != std::string_view::npos && rest.substr(name).starts_with("- Takes(s): ")) return std::nullopt;
  if (name != 0) throw malformed_line("the name of a table after one space");
  const std::size_t table_end = rest.find(' ');
  if (table_end == std::string_view::npos) throw malformed_line("a space and a key after the name of the table");
  rest.remove_prefix(table_end + 1);

  constexpr std::string_view prefix = "user";
  operation made;
  made.kind = keyword->kind;
  if (!rest.starts_with(prefix)) throw malformed_line("a key of the form user<number>");
  rest.remove_prefix(prefix.size());
  const std::optional<std::uint64_t> key = take_number(rest, std::numeric_limits<std::uint64_t>::max());
  if (!key) throw malformed_line("a key of the form user<number>, the number from 0 to 18446744073709551615");
  made.key = *key;

  if (rest.empty() && made.kind == operation_kind::erase) {
    if (!ended) throw malformed_line("a line end after the key (is the file cut off?)");
    return made;
  }
  if (!rest.starts_with(' '))
    throw malformed_line(rest.empty() ? "a space after the key (is the line cut off?)"
                                      : "nothing but digits after user, and a space after them");
  if (made.kind != operation_kind::scan) return made;

  rest.remove_prefix(1);
  const std::optional<std::uint64_t> length = take_number(rest, std::numeric_limits<std::uint32_t>::max());
  if (!length || *length == 0 || !rest.starts_with(' '))
    throw malformed_line("the length of the scan (1 to 4294967295) and a space after the key");
  made.length = static_cast<std::uint32_t>(*length);
  return made;
}

}  // namespace pmlab::workload::detail
