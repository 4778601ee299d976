// Files that the program needs and that are not part of it: scripts, traces.
#pragma once

#include <filesystem>

namespace pmlab::cli {

// The folder that has scripts/report: beside the program (PREFIX/share/pmlab for PREFIX/bin/pmlab), or the source tree
// that this program was built from. Empty: neither is there.
[[nodiscard]] std::filesystem::path source_tree();

}  // namespace pmlab::cli
