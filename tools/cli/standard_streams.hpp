// Standard input, output and error of the program, open or not.
#pragma once

namespace pmlab::cli {

// Opens /dev/null in the place of each one that the caller closed (`pmlab ... >&-`): otherwise a pool or a result would
// take its number, and be read or written as it. What is written to a closed standard output still fails; to a closed
// standard error, where nothing could be told about a failure, it is lost. REQUIRES: no file was opened yet.
void hold_closed_streams() noexcept;

}  // namespace pmlab::cli
