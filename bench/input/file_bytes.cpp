#include "bench/input/file_bytes.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/remedy.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pmlab::input {
namespace {

constexpr std::size_t buffer_bytes = 128 << 10;

// Waits for bytes, their end, or a fault, at most so many milliseconds. False: nothing came.
constexpr int for_ever = -1;
bool has_input(int descriptor, int milliseconds) {
  struct ::pollfd input {
    descriptor, POLLIN, 0
  };
  int ready = 0;
  do ready = ::poll(&input, 1, milliseconds);
  while (ready < 0 && errno == EINTR);
  return ready != 0;
}

// The descriptor of a FIFO once it has bytes, or their end. If a second passes without them, a line on standard error
// explains why the program does nothing.
int opened_fifo(const char* file, const std::string& path) {
  // This does not wait for a writer, and a read would find the end before there was one: poll() waits.
  const int descriptor = ::open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (descriptor < 0) return descriptor;
  constexpr int a_second = 1000;
  if (!has_input(descriptor, a_second)) {
    std::fprintf(stderr, "pmlab: waiting for a program that writes to %s\n", path.c_str());
    has_input(descriptor, for_ever);
  }
  ::fcntl(descriptor, F_SETFL, O_RDONLY);
  return descriptor;
}

// The descriptor of the open file. Throws pmlab::error.
int opened(const std::string& path, const std::string& what) {
  const auto refuse = [&](const std::string& why, const std::string& remedy) {
    throw error(what + " '" + path + "' cannot be read: " + why, remedy);
  };
  const char* const file = path.c_str();
  const bool is_input = path == "-";
  struct ::stat there {};
  const bool is_fifo = !is_input && ::stat(file, &there) == 0 && S_ISFIFO(there.st_mode);
  // Standard input is not opened by a name: that fails for a socket and for another user's file, and a file would begin
  // again at its start.
  const int descriptor = is_input  ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                         : is_fifo ? opened_fifo(file, path)
                                   : ::open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
  if (descriptor < 0)
    refuse(std::generic_category().message(errno), remedy_for(errno, "check the path and its permissions"));
  struct ::stat status {};
  if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(descriptor);
    refuse("it is a directory", "name a file");
  }
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL);
  return descriptor;
}

}  // namespace

file_bytes::file_bytes(std::string path, std::string what)
    : path_(std::move(path)),
      what_(std::move(what)),
      descriptor_(opened(path_, what_)),
      buffer_(new char[buffer_bytes]) {}

file_bytes::~file_bytes() { ::close(descriptor_); }

std::string_view file_bytes::ahead(std::size_t least) {
  while (end_ - begin_ < least) {
    if (begin_ != 0) {
      std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
    const ssize_t count = ::read(descriptor_, buffer_.get() + end_, buffer_bytes - end_);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) {
      // Standard input may be one that does not wait.
      has_input(descriptor_, for_ever);
      continue;
    }
    if (count < 0)
      throw error(what_ + " '" + path_ + "' cannot be read: " + std::generic_category().message(errno),
                  "check the device it is on");
    if (count == 0) break;
    end_ += static_cast<std::size_t>(count);
  }
  return {buffer_.get() + begin_, end_ - begin_};
}

std::size_t file_bytes::read(char* to, std::size_t most) {
  const std::string_view bytes = ahead().substr(0, most);
  std::copy(bytes.begin(), bytes.end(), to);
  skip(bytes.size());
  return bytes.size();
}

}  // namespace pmlab::input
