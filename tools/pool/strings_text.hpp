// Entries of string indexes as text: KEY VALUE, both percent-encoded; values of 8 bytes are numbers.
#pragma once

#include "tools/pool/strings_root.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace pmlab::pool {

// Letters, digits and most signs as they are; blanks, control characters, '%', '#' and bytes beyond ASCII as %XX; no
// bytes at all as "%".
[[nodiscard]] std::string percent_encoded(std::string_view bytes);
// The text without percent encoding, or std::nullopt if its encoding is wrong.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text);

// The line of an entry whose values are "words" or "blobs", without the end of the line.
[[nodiscard]] std::string line_of(const string_entries::value_type& entry, std::string_view values);
// The entry in a line, or std::nullopt if it has none.
[[nodiscard]] std::optional<string_entries::value_type> entry_of(std::string_view line, std::string_view values);

}  // namespace pmlab::pool
