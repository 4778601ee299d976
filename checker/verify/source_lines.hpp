// Where in the source an address of code is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::verify {

// `text` with every {0x...} replaced by "file:line (function)" from addr2line; by the object and offset if that is not
// installed. For inlined code, the innermost place that is no header of the system. In {0x...>0x...} the first is an
// address, and its callers follow: they are on a line of their own.
[[nodiscard]] std::string with_source_lines(std::string_view text);

// A place in the source: of inlined code the innermost one, and those that it is inlined into.
struct source_frame {
  std::string file;  // its path, as the compiler had it
  unsigned line = 0;
  std::string function;
};
// The frames of a return address, without those of the system. Empty: unknown.
[[nodiscard]] std::vector<source_frame> source_frames_of(const void* address);
// Whether the file is one of the checker: a call there is made for code that is verified. Toys and tests are such code.
[[nodiscard]] bool is_of_the_checker(const std::string& file);
// The path from the repository's folder on.
[[nodiscard]] std::string short_path(const std::string& place);

// The lines that a command of the shell prints.
[[nodiscard]] std::vector<std::string> lines_of_command(const std::string& command);

// "function (file:line)" of each return address, which are relative to the object at `path`; "": of the system. Empty:
// the object cannot be read.
[[nodiscard]] std::vector<std::string> functions_at(const std::string& path,
                                                    const std::vector<std::uintptr_t>& addresses);

}  // namespace pmlab::verify
