// One line of a trace that is a text: what the forms share, and the two with keywords.
#pragma once

#include "bench/workload/operation.hpp"
#include "bench/workload/trace_format.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace pmlab::workload::detail {

// Thrown for a line that begins like an operation and is none. what(): the expected form.
class malformed_line : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What a line records. It has no value.
struct traced {
  operation made;
  std::uint64_t times = 1;
  // What it does depends on whether its key is there: an insert of a key that is there is an update of it, and a read
  // of a key that is not there is followed by its insert, which stands for both.
  bool by_presence = false;
};

// Reads the lines of one trace, which may have several files.
class line_parser {
 public:
  line_parser() = default;
  line_parser(const line_parser&) = delete;
  line_parser& operator=(const line_parser&) = delete;
  virtual ~line_parser() = default;

  // The operation of a line (without its end), or nothing if it is a line of another kind. `ended`: the line had an
  // end, so that nothing of it can be missing. Throws malformed_line.
  [[nodiscard]] virtual std::optional<traced> parse(std::string_view line, bool ended) = 0;
  // A file begins: its first line may name its columns.
  virtual void begin_file() {}
};

// The format of a text that this line is an operation or a header of; nothing: the line decides nothing.
[[nodiscard]] std::optional<trace_format> format_of_line(std::string_view line);

// The parser of a format that is a text.
[[nodiscard]] std::unique_ptr<line_parser> parser_of(trace_format format);

// Without the blanks and tabs at both ends.
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;

// Blank, or a comment of '#'.
[[nodiscard]] bool is_blank_or_comment(std::string_view line) noexcept;

// Parses a decimal number at the front of `text` and removes it. Nothing if there is no digit or the number is more
// than `most`.
[[nodiscard]] std::optional<std::uint64_t> take_number(std::string_view& text, std::uint64_t most) noexcept;

// The number that is the whole of `text`.
[[nodiscard]] inline std::optional<std::uint64_t> whole_number(
    std::string_view text, std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) noexcept {
  const std::optional<std::uint64_t> number = take_number(text, most);
  return text.empty() ? number : std::nullopt;
}

}  // namespace pmlab::workload::detail
