// Reads a whole text that a user names.
#pragma once

#include <pmlab/base/error.hpp>
#include "bench/input/input_bytes.hpp"
#include "bench/input/text_encoding.hpp"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace pmlab {

// The text of the file at `path`, decompressed and without a byte order mark; `what` names it in errors: "suite file".
// Throws pmlab::error: it cannot be read, is a directory, is damaged, is no text in UTF-8 (input_bytes,
// byte_order_mark), has a zero byte, or more than `most` bytes, decompressed: a small file may become any number of
// them.
[[nodiscard]] inline std::string read_file(const std::string& path, const std::string& what,
                                           std::size_t most = std::size_t{64} << 20) {
  input::input_bytes bytes(path, what);
  const std::size_t mark = input::byte_order_mark(bytes.start(), bytes.name());
  constexpr std::size_t block = 1 << 20;
  std::string text;
  for (std::size_t size = 0;;) {
    text.resize(size + block);
    const std::size_t count = bytes.read(text.data() + size, block);
    if (const std::size_t zero = std::string_view(text).substr(size, count).find('\0'); zero != std::string_view::npos)
      throw error(bytes.name() + " is no text: line " +
                      std::to_string(1 + std::count(text.data(), text.data() + size + zero, '\n')) + " has a zero byte",
                  "check that it is the file that is meant, and make it or copy it again");
    size += count;
    if (size > most)
      throw error(bytes.name() + " has more than " + std::to_string(most) + " bytes, decompressed, which is too much",
                  "check that it is the file that is meant");
    if (count > 0) continue;
    text.resize(size);
    text.erase(0, mark);
    return text;
  }
}

}  // namespace pmlab
