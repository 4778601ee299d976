// Where the copies of one thread go: DRAM of its own, which every copy writes to again, as a buffer of memcpy is.
#pragma once

#include <pmlab/media/huge_pages.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>

namespace pmlab::microbench {

// Zero, and written to when the constructor returns: no page fault is inside of a figure. Not thread-safe.
class copy_destination {
 public:
  // `bytes` 0: none. Throws std::bad_alloc.
  explicit copy_destination(std::uint64_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    start_ = static_cast<std::byte*>(::operator new(bytes, alignment()));
    media::use_huge_pages(start_, bytes);
    std::memset(start_, 0, bytes);
  }
  copy_destination(const copy_destination&) = delete;
  copy_destination& operator=(const copy_destination&) = delete;
  ~copy_destination() { ::operator delete(start_, alignment()); }

  explicit operator bool() const noexcept { return start_ != nullptr; }
  [[nodiscard]] std::byte* start() const noexcept { return start_; }

  // The place of the next `some` bytes of a copy that is made in pieces. REQUIRES: pieces do not reach beyond the end.
  [[nodiscard]] std::byte* next(std::uint64_t some) noexcept {
    std::byte* const at = start_ + next_;
    next_ = next_ + some == bytes_ ? 0 : next_ + some;
    return at;
  }

 private:
  // A large one has huge pages where the kernel gives them.
  [[nodiscard]] std::align_val_t alignment() const noexcept {
    constexpr std::size_t page_bytes = 4096;
    return std::align_val_t{bytes_ >= media::huge_page_bytes ? media::huge_page_bytes : page_bytes};
  }

  std::uint64_t bytes_;
  std::uint64_t next_ = 0;
  std::byte* start_ = nullptr;
};

}  // namespace pmlab::microbench
