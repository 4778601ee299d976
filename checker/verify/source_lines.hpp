// Where in the source an address of code is.
#pragma once

#include <string>
#include <string_view>

namespace pmlab::verify {

// `text` with every {0x...} replaced by "file:line (function)", as addr2line tells it; by the object and offset where
// that is not there. Of inlined code, the innermost place that is no header of the system.
[[nodiscard]] std::string with_source_lines(std::string_view text);

}  // namespace pmlab::verify
