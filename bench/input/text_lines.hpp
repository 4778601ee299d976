// The lines of a text that a user gives.
#pragma once

#include "bench/input/input_bytes.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace pmlab::input {

// Reads a text from front to end through a buffer of fixed size; nothing of it is copied but the odd line that lies
// across two reads. A byte order mark is no part of the first line. Lines end in LF, CR LF, in CR (if the text has no
// LF) or in zero bytes (if it has more of those: `find -print0`). A small compressed file may hold any number of bytes
// that are no text: what no text has ends the reading at once, not at the end of the file. Not thread-safe.
class text_lines {
 public:
  // Throws pmlab::error as input_bytes does, and if the text is in UTF-16 or UTF-32.
  text_lines(std::string path, std::string what);
  explicit text_lines(input_bytes bytes);

  // The next line without its end, good until the next call; of a line longer than the buffer (256 KiB), its start.
  // False at the end of the file. Throws pmlab::error as input_bytes::read does, and with the number of the line: it
  // has a zero byte, more than `most_bytes`, or is the last of more than `most_empty` empty ones.
  [[nodiscard]] bool next(std::string_view& line);

  // The line that `next` returned:
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }  // counted from 1
  [[nodiscard]] bool ended() const noexcept { return ended_; }             // false: the file ends inside it
  [[nodiscard]] bool is_whole() const noexcept { return !inside_; }        // false: only its start was given
  // "FILE:12".
  [[nodiscard]] std::string place() const { return bytes_.path() + ":" + std::to_string(number_); }

  static constexpr std::size_t most_bytes = std::size_t{16} << 20;  // in a line; YCSB prints whole values
  static constexpr std::uint64_t most_empty = 1 << 20;              // empty lines, one behind the other

  // What ends lines here: LF (also for CR LF), CR or a zero byte.
  [[nodiscard]] char separator() const noexcept { return separator_; }
  [[nodiscard]] const input_bytes& bytes() const noexcept { return bytes_; }

 private:
  // Throws pmlab::error if no text has this line: it has `bytes` so far, and `more` are those not checked yet.
  void check(std::string_view more, std::size_t bytes);
  [[noreturn]] void refuse(std::uint64_t line, const std::string& why, const char* remedy) const;
  // Moves the unread bytes to the front of the buffer and reads more behind them. False at the end of the file.
  bool fill();
  // Returns `size` bytes as a line and removes them, and `separator` more, from the buffer.
  void take(std::string_view& line, std::size_t size, std::size_t separator) noexcept;

  input_bytes bytes_;
  char separator_;
  std::unique_ptr<char[]> buffer_;
  std::size_t begin_ = 0;  // unread bytes in the buffer: [begin_, end_)
  std::size_t end_ = 0;
  std::uint64_t number_ = 0;
  bool ended_ = true;
  bool inside_ = false;      // a line whose start was given already
  std::size_t passed_ = 0;   // bytes of that line that were taken
  std::uint64_t empty_ = 0;  // empty lines, up to the last one
};

}  // namespace pmlab::input
