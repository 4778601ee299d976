// Names of any bytes as text, and back.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace pmlab {

// The name as text that a terminal, JSON and a command line can carry: bytes that are no UTF-8 and control characters
// as \xNN. A name that has such bytes, or looks as if, has \\ for each backslash.
[[nodiscard]] std::string printable(std::string_view name);

// A text for one line of a terminal, as above, but each backslash stays one: names in the text may be escaped already.
[[nodiscard]] std::string one_line(std::string_view text);

// The name that printable() has made into this text. Other text stays as it is.
[[nodiscard]] std::string name_of_printable(std::string_view text);

// True if all of it is text in UTF-8.
[[nodiscard]] bool is_utf8(std::string_view bytes);

// The byte of two hexadecimal digits; std::nullopt: this is something else.
[[nodiscard]] std::optional<char> byte_of_digits(std::string_view digits);

}  // namespace pmlab
