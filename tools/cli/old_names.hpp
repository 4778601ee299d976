// Commands and options of the version before, which still work in this one.
#pragma once

#include "tools/cli/command.hpp"

namespace pmlab::cli {

// The command line in the names of today; a note on standard error has each change. Throws pmlab::error: `--kind` of
// `stores bench` names no kind.
[[nodiscard]] arguments in_new_names(const arguments& typed);

}  // namespace pmlab::cli
