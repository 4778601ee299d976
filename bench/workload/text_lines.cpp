#include "bench/workload/text_lines.hpp"
#include <pmlab/base/error.hpp>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

namespace pmlab::workload {

namespace {

constexpr std::size_t buffer_bytes = 256 << 10;
// zlib reads a plain file straight into our buffer if the request is at least twice as large as its own buffer.
constexpr unsigned zlib_buffer_bytes = 64 << 10;

[[nodiscard]] std::string reason(int number) { return std::generic_category().message(number); }

// A gzip stream over the file, or an error.
[[nodiscard]] gzFile open_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw error("cannot open '" + path + "': " + reason(errno), "check the path and its permissions");
  struct ::stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(descriptor);
    throw error("'" + path + "' is a directory", "name a file");
  }
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
  gzFile file = ::gzdopen(descriptor, "rb");
  if (file == nullptr) {
    ::close(descriptor);
    throw error("cannot read '" + path + "': no memory for zlib", "free some memory");
  }
  ::gzbuffer(file, zlib_buffer_bytes);
  return file;
}

}  // namespace

void text_lines::closer::operator()(gzFile_s* file) const noexcept { ::gzclose_r(file); }

text_lines::text_lines(std::string path)
    : path_(std::move(path)), file_(open_file(path_)), buffer_(new char[buffer_bytes]) {}

bool text_lines::next(std::string_view& line) {
  std::size_t searched = 0;
  for (;;) {
    const char* const start = buffer_.get() + begin_;
    const void* const found = std::memchr(start + searched, '\n', end_ - begin_ - searched);
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
  if (ended_ && line.ends_with('\r')) line.remove_suffix(1);
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
  const int count = ::gzread(file_.get(), buffer_.get() + end_, static_cast<unsigned>(buffer_bytes - end_));
  // At the end of a truncated file, zlib returns the remaining bytes and remembers the failure.
  int failure = Z_OK;
  const char* const message = ::gzerror(file_.get(), &failure);
  if (failure == Z_ERRNO) throw error("cannot read '" + path_ + "': " + reason(errno), "check the device it is on");
  if (count < 0 || failure != Z_OK)
    throw error("'" + path_ + "' is a damaged or truncated gzip file: " + message, "make it or copy it again");
  end_ += static_cast<std::size_t>(count);
  return count > 0;
}

}  // namespace pmlab::workload
