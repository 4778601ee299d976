// The line by which a command tells that it failed.
#pragma once

#include <string_view>

namespace pmlab::cli {

// Prints "pmlab: error: PROBLEM" to standard error, as one line whatever the problem quotes: bytes that a terminal does
// not show are escaped, and of a very long text the middle is left out. A full standard error is no failure: the status
// still tells.
void complain(std::string_view problem);

}  // namespace pmlab::cli
