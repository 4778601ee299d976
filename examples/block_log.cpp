// A log of short lines in a file or on a block device: direct I/O through io_uring, each line durable when its number
// is printed, found again after a crash.
//
//   block_log FILE append TEXT...   appends each text; makes the file, of 1 MB, if there is none
//   block_log FILE show             every line with its number
//
// A line has a block of its own with a checksum over all of it. A power failure may leave a part of the last block:
// its checksum is wrong then, and its number was never printed.
#include <pmlab/base/checksum.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/file.hpp>
#include <pmlab/blocks/synchronous.hpp>

#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>
#include <string>
#include <string_view>

namespace {

namespace blocks = pmlab::blocks;

constexpr std::size_t block_bytes = 4096;
constexpr std::uint64_t file_bytes = std::uint64_t{1} << 20;

// The content of a block. All zeros is no line: numbers begin at 1.
struct line {
  std::uint64_t checksum;  // checksum of all that follows
  std::uint64_t number;
  std::uint64_t bytes;  // bytes of text
  char text[block_bytes - 24];

  [[nodiscard]] std::uint64_t sum() const { return pmlab::checksum(&number, sizeof *this - sizeof checksum); }
  // Lines of earlier releases of this program count, too.
  [[nodiscard]] bool is_whole() const { return pmlab::is_checksum(checksum, &number, sizeof *this - sizeof checksum); }
};
static_assert(sizeof(line) == block_bytes);

class block_log {
 public:
  explicit block_log(const std::string& path) : file_(opened(path)), device_(file_) {
    while (next_ < file_.shape().blocks && read(next_)) ++next_;
  }

  // Durable on return. Returns the line's number.
  std::uint64_t append(std::string_view text) {
    line& l = *new (block_.data()) line{};
    if (text.size() > sizeof l.text) throw pmlab::error("a line is too long", "give at most 4072 bytes");
    if (next_ == file_.shape().blocks) throw pmlab::error("the log is full", "begin another file");
    l.bytes = text.size();
    l.number = next_ + 1;
    std::memcpy(l.text, text.data(), text.size());
    l.checksum = l.sum();
    device_.write_durable(next_, block_.bytes(), blocks::stream::log);
    return ++next_;
  }

  void show(std::ostream& to) {
    for (std::uint64_t block = 0; block < next_ && read(block); ++block) {
      const line& l = *reinterpret_cast<const line*>(block_.data());
      to << l.number << ' ' << std::string_view(l.text, l.bytes) << '\n';
    }
  }

 private:
  static const std::string& opened(const std::string& path) {
    if (!std::filesystem::exists(path)) blocks::create_file(path, file_bytes);
    return path;
  }

  // False: the block holds no line, or a part of one.
  bool read(std::uint64_t block) {
    device_.read(block, block_.bytes(), blocks::stream::log);
    const line& l = *reinterpret_cast<const line*>(block_.data());
    return l.number == block + 1 && l.bytes <= sizeof l.text && l.is_whole();
  }

  blocks::file file_;
  blocks::synchronous<blocks::file> device_;
  blocks::buffer block_{block_bytes};
  std::uint64_t next_ = 0;
};

int run(int count, char** arguments) {
  const std::string_view command = count > 2 ? arguments[2] : "";
  if (!(command == "show" && count == 3) && !(command == "append" && count > 3)) {
    std::cerr << "usage: block_log FILE append TEXT... | show\n";
    return 2;
  }
  block_log log(arguments[1]);
  if (command == "show") log.show(std::cout);
  for (int i = 3; i < count; ++i) std::cout << log.append(arguments[i]) << std::endl;
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run(count, arguments);
  } catch (const std::exception& e) {
    std::cerr << "block_log: error: " << e.what() << '\n';
    return 1;
  }
}
