// Reads a whole text that a user names.
#pragma once

#include "bench/input/input_bytes.hpp"
#include "bench/input/text_encoding.hpp"

#include <cstddef>
#include <string>

namespace pmlab {

// The text of the file at `path`, decompressed and without a byte order mark; `what` names it in errors: "suite file".
// Throws pmlab::error: it cannot be read, is a directory, is damaged, or is no text in UTF-8 (input_bytes,
// byte_order_mark).
[[nodiscard]] inline std::string read_file(const std::string& path, const std::string& what) {
  input::input_bytes bytes(path, what);
  const std::size_t mark = input::byte_order_mark(bytes.start(), bytes.name());
  constexpr std::size_t block = 1 << 20;
  std::string text;
  for (std::size_t size = 0;;) {
    text.resize(size + block);
    const std::size_t count = bytes.read(text.data() + size, block);
    size += count;
    if (count > 0) continue;
    text.resize(size);
    return text.substr(mark);
  }
}

}  // namespace pmlab
