// A file that holds one crash state after the other. Pages that a check has left as they were are not written again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include <sys/types.h>

namespace pmlab::programs {

class pool_image {
 public:
  pool_image(std::string path, std::uint64_t bytes) : path_(std::move(path)), bytes_(bytes) {}
  pool_image(const pool_image&) = delete;
  pool_image& operator=(const pool_image&) = delete;
  ~pool_image();

  // Makes the content that of `content`, all of whose data are on `pages`; all other pages are zeros. Throws
  // pmlab::error if there is no room.
  void write(const std::byte* content, const std::set<std::uint64_t>& pages);
  // Changes one word. REQUIRES: after write.
  void put(std::uint64_t at, std::uint64_t word);
  // The state of another file. REQUIRES: `other` has been written.
  void write_as(const pool_image& other) { write(other.written_, other.pages_); }
  // A hash of the places of the lines that a check has changed since. REQUIRES: after write.
  [[nodiscard]] std::uint64_t changes() const;

 private:
  void make();
  void store(std::uint64_t at, const void* from, std::size_t bytes);
  [[nodiscard]] bool is_in_place() const;
  void unmap() noexcept;

  std::string path_;
  std::uint64_t bytes_;
  std::byte* mapped_ = nullptr;    // the file
  std::byte* written_ = nullptr;   // as it was written
  std::set<std::uint64_t> pages_;  // pages of `written_` that may hold data
  int file_ = -1;
  ino_t number_ = 0;
};

}  // namespace pmlab::programs
