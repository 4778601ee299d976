// How a text is encoded, by its first bytes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace pmlab::input {

// The bytes of the byte order mark at the start of a text: 3 (UTF-8), or 0. `name` names the file in the error. Throws
// pmlab::error if the text is in UTF-16 or UTF-32.
[[nodiscard]] std::size_t byte_order_mark(std::string_view start, const std::string& name);

// True if the bytes are hardly those of a text: they have control characters other than line ends, tabs and form feeds.
[[nodiscard]] bool is_binary(std::string_view start) noexcept;

}  // namespace pmlab::input
