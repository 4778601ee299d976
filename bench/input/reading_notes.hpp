// What was found in files that were read, and is to be shown beside the results.
#pragma once

#include <string>
#include <vector>

namespace pmlab::input {

// The notes of this process, in their order: lines that are nothing, a file that may be cut off. The reader of a file
// adds its own, and the command that shows results takes them all. Thread safety: one thread at a time.
[[nodiscard]] std::vector<std::string>& reading_notes();

}  // namespace pmlab::input
