// The content of a file that a user gives, decompressed.
#pragma once

#include "bench/input/byte_source.hpp"
#include "bench/input/file_bytes.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace pmlab::input {

// Reads a file from front to end. gzip, zstd and xz are known by the first bytes, not by the name of the file. Forms
// that another program must unpack are refused with its name. Every reader of a user's file is built on this one. Not
// thread-safe.
class input_bytes {
 public:
  // `what` names the kind of the file in errors: "trace". Throws pmlab::error: the file cannot be opened, is a
  // directory, or is of a form that is not read here.
  input_bytes(std::string path, std::string what);

  // Reads up to `most` > 0 bytes. Returns how many; 0: at the end. Throws pmlab::error: it cannot be read on, or is
  // damaged or cut off.
  std::size_t read(char* to, std::size_t most);

  // The first bytes of the content, up to 64 KiB, which read() gives all the same.
  [[nodiscard]] std::string_view start() const noexcept { return start_; }
  [[nodiscard]] bool is_compressed() const noexcept { return decoder_ != nullptr; }
  [[nodiscard]] const std::string& path() const noexcept { return file_->path(); }
  // "trace 'PATH'", for messages.
  [[nodiscard]] std::string name() const { return file_->what() + " '" + file_->path() + "'"; }

 private:
  std::unique_ptr<file_bytes> file_;
  std::unique_ptr<byte_source> decoder_;  // null: it is read as it is
  std::string start_;
  std::size_t given_ = 0;  // bytes of start_ that read() has given
};

}  // namespace pmlab::input
