// A block device in DRAM: the fastest one, for tests and as the base of the others.
//
// A request takes effect when it is submitted, and completes at the next reap. Nothing survives the process.
#pragma once

#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/immediate_queue.hpp>
#include <pmlab/media/huge_pages.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include <sys/mman.h>

namespace pmlab::blocks {

// Thread safety: see blocks/device.hpp. Requests of two threads that overlap race, as on a drive; their blocks then hold
// bytes of both.
class memory {
 public:
  // Zeros at first; memory is taken when a block is first written. Throws pmlab::error for an impossible geometry or if
  // there is no room.
  explicit memory(const geometry& shape) : shape_(shape) {
    check_geometry(shape, name());
    void* const start =
        mmap(nullptr, shape.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED)
      throw error("no memory for a device of " + std::to_string(shape.bytes()) + " bytes", "make it smaller");
    media::use_huge_pages(start, shape.bytes());
    start_ = static_cast<std::byte*>(start);
  }
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;
  ~memory() { munmap(start_, shape_.bytes()); }

  // Performs requests when they are submitted.
  using queue = immediate_queue<memory>;

  // The one it was made with.
  [[nodiscard]] geometry shape() const noexcept { return shape_; }
  // "memory".
  [[nodiscard]] std::string name() const { return "memory"; }
  // Empty: it never fails.
  [[nodiscard]] std::string failure() const { return {}; }

  // The content, for tests and tools that look at an image.
  [[nodiscard]] std::span<std::byte> content() noexcept { return {start_, shape_.bytes()}; }

 private:
  friend queue;

  void perform(const request& r) noexcept {
    std::byte* const place = start_ + r.first * shape_.block_bytes;
    const std::size_t bytes = std::size_t{r.count} * shape_.block_bytes;
    if (r.what == operation::read) {
      std::memcpy(r.data, place, bytes);
    } else if (writes(r.what)) {
      std::memcpy(place, r.data, bytes);
    } else if (r.what == operation::discard) {
      std::memset(place, 0, bytes);
    }
  }

  geometry shape_;
  std::byte* start_ = nullptr;
};

static_assert(device<memory>);

}  // namespace pmlab::blocks
