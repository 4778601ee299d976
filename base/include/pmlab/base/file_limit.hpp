// The limit of this process for the size of a file.
#pragma once

#include <pmlab/base/error.hpp>

#include <cstdint>
#include <string>

#include <sys/resource.h>

namespace pmlab {

// Throws pmlab::error: this process may not write a file of `bytes` bytes. A write beyond the limit ends the process
// with SIGXFSZ, which a library does not catch. A limit that is lowered later is not noticed. `or_else`: what else the
// user can do: ", or ...".
inline void check_file_limit(const std::string& file, std::uint64_t bytes, const std::string& or_else) {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur) return;
  throw error(file + " needs " + std::to_string(bytes) + " bytes, and this process may write files of " +
                  std::to_string(limit.rlim_cur) + " bytes",
              "raise its limit for files (ulimit -f)" + or_else);
}

}  // namespace pmlab
