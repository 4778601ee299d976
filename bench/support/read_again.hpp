// Files that are read more than once.
#pragma once

#include <pmlab/base/error.hpp>

#include <filesystem>
#include <string>
#include <system_error>

namespace pmlab {

// Refuses a pipe, a device and standard input ("-"), whose second reader would wait for ever, or find nothing. `what`
// names the file in the error: "trace"; `why`: a clause on what reads it again. Another file, and one that is not
// there, are left to the reader. Throws pmlab::error.
inline void refuse_pipe(const std::string& path, const std::string& what, const std::string& why) {
  if (path == "-") throw error(what + " '-' is standard input, and " + why, "give a file");
  std::error_code unknown;
  const auto status = std::filesystem::status(path, unknown);
  if (std::filesystem::exists(status) && std::filesystem::is_other(status))
    throw error(what + " '" + path + "' is a pipe or a device, and " + why, "give a file");
}

}  // namespace pmlab
