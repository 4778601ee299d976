// What the code that is verified throws, in words.
#pragma once

#include <string>

namespace pmlab::verify {

// The text of the exception that is being handled, or that has ended in std::terminate: its message, or its type. "":
// there is none. A host_refusal ends the process (unable.hpp).
[[nodiscard]] std::string text_of_thrown();

// From now on, in this process: an exception that nothing catches, and an end of the process by `exit`, are violations
// that the machine reports, with the positions of all threads.
void report_ends_by_code();

// Loads the shared object in a process of its own. Throws pmlab::error if a constructor of its statics throws, faults
// or ends the process: it would end this one, too.
void check_constructors(const std::string& path);

}  // namespace pmlab::verify
