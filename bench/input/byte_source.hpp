// Bytes that are read from front to end.
#pragma once

#include <cstddef>

namespace pmlab::input {

class byte_source {
 public:
  byte_source() = default;
  byte_source(const byte_source&) = delete;
  byte_source& operator=(const byte_source&) = delete;
  virtual ~byte_source() = default;

  // Reads up to `most` > 0 bytes to `to`. Returns how many; 0: there are no more. Throws pmlab::error that names the
  // file: it cannot be read on, it is damaged.
  virtual std::size_t read(char* to, std::size_t most) = 0;
};

}  // namespace pmlab::input
