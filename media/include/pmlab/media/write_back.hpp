// Makes durable what a killed process has left in the caches, before anything reads it.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/file_parts.hpp>
#include <pmlab/media/cache_flush.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include <sys/mman.h>

namespace pmlab::media {

// The bytes of a file, mapped to be read. Thread safety: that of memory.
class mapped_file {
 public:
  // `file`: an open descriptor of `path`, with at least `bytes` bytes. Throws pmlab::error.
  mapped_file(const std::string& path, int file, std::uint64_t bytes)
      : begin_(::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0)), bytes_(bytes) {
    if (begin_ == MAP_FAILED)
      throw error("cannot map " + path + ": " + std::strerror(errno), "check the limit of address space (ulimit -v)");
  }
  mapped_file(const mapped_file&) = delete;
  mapped_file& operator=(const mapped_file&) = delete;
  ~mapped_file() { ::munmap(begin_, bytes_); }

  // The first byte of the file.
  [[nodiscard]] const std::byte* begin() const noexcept { return static_cast<const std::byte*>(begin_); }
  // The bytes that are mapped.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  void* begin_;
  std::uint64_t bytes_;
};

// Writes all lines of the file back that some process may have stored to. `file`: its descriptor, whose place moves.
// Its holes stay holes: to flush a line of one would give it a page. Returns the bytes of the lines.
[[nodiscard]] inline std::uint64_t write_back(int file, const mapped_file& mapped, flush_instruction instruction) {
  std::uint64_t flushed = 0;
  for_each_part_with_data(file, mapped.bytes(), [&](std::uint64_t at, std::uint64_t bytes) {
    flush_lines(instruction, mapped.begin() + at, bytes);
    flushed += bytes;
  });
  store_fence();
  return flushed;
}

}  // namespace pmlab::media
