// Reads a whole file that a user names.
#pragma once

#include <pmlab/base/error.hpp>

#include <fstream>
#include <sstream>
#include <string>

namespace pmlab {

// The bytes of the file at `path`; `what` names it in the error: "suite file". Throws pmlab::error if it cannot be
// read.
[[nodiscard]] inline std::string read_file(const std::string& path, const std::string& what) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || !text) throw error(what + " '" + path + "' cannot be read", "check the path and its permissions");
  return text.str();
}

}  // namespace pmlab
