// Writes text to a file atomically.
#pragma once

#include "bench/support/output_file.hpp"

#include <string>
#include <string_view>

namespace pmlab {

// Makes `text` the content of the file at `path`. After a power failure the file has its old content or this one; on
// return it is this one. Devices, FIFOs, symbolic links and "-" (standard output): see output_file. Throws pmlab::error
// that names the path if any byte was not written: a full device, no permission, no folder.
inline void write_file(const std::string& path, std::string_view text) {
  output_file file(path);
  file.write(text);
  file.finish();
}

}  // namespace pmlab
