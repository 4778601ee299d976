// Another program, run to its end.
#pragma once

#include <string>
#include <vector>

namespace pmlab::claims {

// Runs `words[0]` (a path, or a name that is looked for in PATH) with its output in the file `output` and its complaints
// where ours go. Returns its exit status. Ctrl-C ends it, and this function then throws. Throws pmlab::error: it cannot
// be run, a signal ended it.
[[nodiscard]] int run_program(const std::vector<std::string>& words, const std::string& output);

// Whether PATH has a program of that name.
[[nodiscard]] bool has_program(const std::string& name);

}  // namespace pmlab::claims
