// A file that holds one crash state after the other.
#include "checker/programs/pool_image.hpp"

#include "checker/programs/record.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/file_parts.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pmlab::programs {

pool_image::~pool_image() { unmap(); }

void pool_image::unmap() noexcept {
  if (mapped_ != nullptr) ::munmap(mapped_, bytes_);
  if (written_ != nullptr) ::munmap(written_, bytes_);
  written_ = nullptr;
  pages_.clear();
  if (file_ >= 0) ::close(file_);
  mapped_ = nullptr;
  file_ = -1;
}

// A check may replace the file, or cut it.
bool pool_image::is_in_place() const {
  struct stat status {};
  return mapped_ != nullptr && ::stat(path_.c_str(), &status) == 0 && status.st_ino == number_ &&
         status.st_size == static_cast<off_t>(bytes_);
}

void pool_image::make() {
  unmap();
  std::remove(path_.c_str());
  file_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  struct stat status {};
  const bool made = file_ >= 0 && ::ftruncate(file_, static_cast<off_t>(bytes_)) == 0 && ::fstat(file_, &status) == 0;
  void* const at = made ? ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0) : MAP_FAILED;
  void* const copy =
      ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED || copy == MAP_FAILED)
    throw error("cannot write a crash state to " + path_ + ": " + std::strerror(errno),
                "make room there, or name another folder by TMPDIR");
  mapped_ = static_cast<std::byte*>(at);
  written_ = static_cast<std::byte*>(copy);
  number_ = status.st_ino;
}

void pool_image::write(const std::byte* content, const std::set<std::uint64_t>& pages) {
  if (!is_in_place()) make();
  // Zeros where a check has stored to a page that has no data.
  auto next = pages.begin();
  for_each_part_with_data(file_, bytes_, [&](std::uint64_t from, std::uint64_t part) {
    for (std::uint64_t page = from / page_bytes; page * page_bytes < from + part; ++page) {
      while (next != pages.end() && *next < page) ++next;
      if (next == pages.end() || *next != page) std::memset(mapped_ + page * page_bytes, 0, page_bytes);
    }
  });
  for (const std::uint64_t page : pages) {
    const std::uint64_t at = page * page_bytes;
    if (std::memcmp(mapped_ + at, content + at, page_bytes) != 0) store(at, content + at, page_bytes);
    if (std::memcmp(written_ + at, content + at, page_bytes) != 0) std::memcpy(written_ + at, content + at, page_bytes);
  }
  for (const std::uint64_t page : pages_)
    if (!pages.contains(page)) std::memset(written_ + page * page_bytes, 0, page_bytes);
  pages_ = pages;
}

void pool_image::put(std::uint64_t at, std::uint64_t word) {
  store(at, &word, sizeof(word));
  std::memcpy(written_ + at, &word, sizeof(word));
  pages_.insert(at / page_bytes);
}

std::uint64_t pool_image::changes() const {
  if (!is_in_place()) return 0;
  std::uint64_t hash = 0;
  for (const std::uint64_t page : pages_) {
    const std::uint64_t begin = page * page_bytes;
    if (std::memcmp(mapped_ + begin, written_ + begin, page_bytes) == 0) continue;
    for (std::uint64_t at = begin; at < begin + page_bytes; at += line_bytes)
      if (std::memcmp(mapped_ + at, written_ + at, line_bytes) != 0) hash += hash_of_word(at, 1);
  }
  return hash;
}

// By a call, which fails where there is no room; a store would raise a signal.
void pool_image::store(std::uint64_t at, const void* from, std::size_t bytes) {
  if (::pwrite(file_, from, bytes, static_cast<off_t>(at)) != static_cast<ssize_t>(bytes))
    throw error("cannot write a crash state to " + path_ + ": " + std::strerror(errno),
                "make room there, or name another folder by TMPDIR");
}

}  // namespace pmlab::programs
