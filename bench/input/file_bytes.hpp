// The bytes of a file as they lie there.
#pragma once

#include "bench/input/byte_source.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace pmlab::input {

// Reads through a buffer, so that the next bytes can be looked at before they are taken. Not thread-safe.
class file_bytes final : public byte_source {
 public:
  // Opens a file, a device, a FIFO (then it waits for a writer, as other programs do) or "-", standard input. `what`
  // names its kind in errors: "trace". Throws pmlab::error: it cannot be opened, or is a directory.
  file_bytes(std::string path, std::string what);
  ~file_bytes() override;

  std::size_t read(char* to, std::size_t most) override;

  // The next bytes, at least `least` unless the file ends before. REQUIRES: `least` is at most 4096.
  [[nodiscard]] std::string_view ahead(std::size_t least = 1);
  // Takes the first `count` of them.
  void skip(std::size_t count) noexcept { begin_ += count; }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const std::string& what() const noexcept { return what_; }

 private:
  std::string path_, what_;
  int descriptor_;
  std::unique_ptr<char[]> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // bytes that are not taken yet
};

}  // namespace pmlab::input
