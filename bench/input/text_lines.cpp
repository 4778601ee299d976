#include "bench/input/text_lines.hpp"
#include "bench/input/text_encoding.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace pmlab::input {
namespace {

constexpr std::size_t buffer_bytes = 256 << 10;

char separator_of(std::string_view start) noexcept {
  const auto line_feeds = std::count(start.begin(), start.end(), '\n');
  if (std::count(start.begin(), start.end(), '\0') > line_feeds) return '\0';
  return line_feeds == 0 && start.find('\r') != std::string_view::npos ? '\r' : '\n';
}

}  // namespace

text_lines::text_lines(std::string path, std::string what)
    : text_lines(input_bytes(std::move(path), std::move(what))) {}

text_lines::text_lines(input_bytes bytes)
    : bytes_(std::move(bytes)), separator_(separator_of(bytes_.start())), buffer_(new char[buffer_bytes]) {
  const std::size_t mark = byte_order_mark(bytes_.start(), bytes_.name());
  if (mark == 0) return;
  fill();
  begin_ = mark;
}

bool text_lines::next(std::string_view& line) {
  std::size_t searched = 0;
  for (;;) {
    const char* const start = buffer_.get() + begin_;
    const void* const found = std::memchr(start + searched, separator_, end_ - begin_ - searched);
    if (found != nullptr) {
      ended_ = true;
      take(line, static_cast<std::size_t>(static_cast<const char*>(found) - start), 1);
      if (!std::exchange(inside_, false)) break;
      searched = 0;
      continue;
    }
    searched = end_ - begin_;
    if (searched == buffer_bytes) {
      take(line, searched, 0);
      if (!std::exchange(inside_, true)) {
        ended_ = false;
        break;
      }
      searched = 0;
    }
    if (!fill()) {
      if (inside_ || searched == 0) return false;
      ended_ = false;
      take(line, searched, 0);
      break;
    }
  }
  ++number_;
  if (separator_ == '\n' && line.ends_with('\r')) line.remove_suffix(1);
  return true;
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
  const std::size_t count = bytes_.read(buffer_.get() + end_, buffer_bytes - end_);
  end_ += count;
  return count > 0;
}

}  // namespace pmlab::input
