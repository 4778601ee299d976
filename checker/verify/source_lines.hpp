// Where in the source an address of code is.
#pragma once

#include <string>
#include <string_view>

namespace pmlab::verify {

// `text` with every {0x...} replaced by "file:line (function)" from addr2line; by the object and offset if that is not
// installed. Of inlined code, the innermost place that is no header of the system.
[[nodiscard]] std::string with_source_lines(std::string_view text);

}  // namespace pmlab::verify
