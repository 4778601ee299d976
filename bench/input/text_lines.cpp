#include "bench/input/text_lines.hpp"
#include <pmlab/base/error.hpp>
#include "bench/input/text_encoding.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace pmlab::input {
namespace {

constexpr std::size_t line_buffer_bytes = 256 << 10;
constexpr const char* is_it_meant = "check that it is the file that is meant, and make it or copy it again";

char separator_of(std::string_view start) noexcept {
  const auto line_feeds = std::count(start.begin(), start.end(), '\n');
  const auto zeros = std::count(start.begin(), start.end(), '\0');
  // Names between zero bytes have a character each, at least: zeros alone are no text.
  if (zeros > line_feeds && zeros * 2 <= static_cast<std::ptrdiff_t>(start.size())) return '\0';
  return line_feeds == 0 && start.find('\r') != std::string_view::npos ? '\r' : '\n';
}

}  // namespace

text_lines::text_lines(std::string path, std::string what)
    : text_lines(input_bytes(std::move(path), std::move(what))) {}

text_lines::text_lines(input_bytes bytes)
    : bytes_(std::move(bytes)), separator_(separator_of(bytes_.start())), buffer_(new char[line_buffer_bytes]) {
  const std::size_t mark = byte_order_mark(bytes_.start(), bytes_.name());
  if (mark == 0) return;
  fill();
  begin_ = mark;
}

bool text_lines::next(std::string_view& line) {
  std::size_t searched = 0;
  for (;;) {
    const char* const start = buffer_.get() + begin_;
    const std::size_t unread = end_ - begin_;
    const void* const found = std::memchr(start + searched, separator_, unread - searched);
    const bool is_end = found != nullptr;
    const std::size_t size = is_end ? static_cast<std::size_t>(static_cast<const char*>(found) - start) : unread;
    check({start + searched, size - searched}, passed_ + size);
    searched = size;
    if (is_end || size == line_buffer_bytes) {
      ended_ = is_end;
      take(line, size, is_end ? 1 : 0);
      passed_ = is_end ? 0 : passed_ + size;
      searched = 0;
      if (!std::exchange(inside_, !is_end)) break;
    } else if (!fill()) {
      if (inside_ || size == 0) return false;
      ended_ = false;
      take(line, size, 0);
      break;
    }
  }
  ++number_;
  if (separator_ == '\n' && line.ends_with('\r')) line.remove_suffix(1);
  empty_ = line.empty() ? empty_ + 1 : 0;
  if (empty_ > most_empty)
    refuse(number_, "it is the last of " + std::to_string(empty_) + " empty lines, which no text has", is_it_meant);
  return true;
}

void text_lines::check(std::string_view more, std::size_t bytes) {
  // A line whose start was given has its number already.
  const std::uint64_t number = number_ + (inside_ ? 0 : 1);
  if (separator_ != '\0' && std::memchr(more.data(), '\0', more.size()) != nullptr)
    refuse(
        number, "the line has a zero byte, which no text has",
        "check that it is the file that is meant; where zero bytes end lines, write line ends: tr '\\0' '\\n' < FILE "
        "> NEW");
  if (bytes > most_bytes)
    refuse(number, "the line has more than " + std::to_string(most_bytes >> 20) + " MiB, which none may have",
           is_it_meant);
}

void text_lines::refuse(std::uint64_t line, const std::string& why, const char* remedy) const {
  throw error(bytes_.path() + ":" + std::to_string(line) + ": " + why, remedy);
}

void text_lines::take(std::string_view& line, std::size_t size, std::size_t separator) noexcept {
  line = {buffer_.get() + begin_, size};
  begin_ += size + separator;
}

bool text_lines::fill() {
  if (begin_ != 0) {
    std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const std::size_t count = bytes_.read(buffer_.get() + end_, line_buffer_bytes - end_);
  end_ += count;
  return count > 0;
}

}  // namespace pmlab::input
