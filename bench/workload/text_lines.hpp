// The lines of a text file, plain or gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct gzFile_s;

namespace pmlab::workload {

// Reads a file from start to end through a buffer of fixed size; nothing of it is copied but the odd line that lies
// across two reads. Gzip is known by its first bytes, not by the name of the file. Not thread-safe.
class text_lines {
 public:
  // Throws pmlab::error if the file cannot be opened or is a directory.
  explicit text_lines(std::string path);

  // The next line without its end (LF or CR LF), good until the next call; of a line longer than the buffer (256 KiB),
  // its start. False at the end of the file. Throws pmlab::error if the file cannot be read on, or is a damaged or
  // truncated gzip file.
  [[nodiscard]] bool next(std::string_view& line);

  // The line that `next` returned:
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }  // counted from 1
  [[nodiscard]] bool ended() const noexcept { return ended_; }             // false: the file ends inside it

 private:
  struct closer {
    void operator()(gzFile_s* file) const noexcept;
  };

  // Moves the unread bytes to the front of the buffer and reads more behind them. False at the end of the file.
  bool fill();
  // Returns `size` bytes as a line and removes them, and `separator` more, from the buffer.
  void take(std::string_view& line, std::size_t size, std::size_t separator) noexcept;

  std::string path_;
  std::unique_ptr<gzFile_s, closer> file_;
  std::unique_ptr<char[]> buffer_;
  std::size_t begin_ = 0;  // unread bytes in the buffer: [begin_, end_)
  std::size_t end_ = 0;
  std::uint64_t number_ = 0;
  bool ended_ = true;
  bool inside_ = false;  // of a line whose start was given already
};

}  // namespace pmlab::workload
