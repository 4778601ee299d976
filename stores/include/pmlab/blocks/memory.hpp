// A block device in DRAM: the fastest one, for tests and as the base of the others.
//
// A request takes effect when it is submitted, and completes at the next reap. Nothing survives the process.
#pragma once

#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/immediate_queue.hpp>
#include <pmlab/media/huge_pages.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/sync/relax.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include <sys/mman.h>

namespace pmlab::blocks {

// Thread safety: see blocks/device.hpp. Requests of two threads that overlap keep each block whole, or each unit of
// atomic_bytes if that is larger (B8): a lock is held while a unit is copied. Its price is one atomic change and a
// store for each 4 KiB or unit.
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

  // A lock of the units with the same remainder. It costs one atomic change per copy: one that readers share costs two.
  struct alignas(media::cache_line_bytes) unit_lock {
    std::atomic<bool> held{false};

    void lock() noexcept {
      for (sync::backoff wait; held.exchange(true, std::memory_order_acquire); wait.pause()) continue;
    }
    void unlock() noexcept { held.store(false, std::memory_order_release); }
  };
  static constexpr std::size_t lock_count = 128;
  static constexpr std::uint32_t least_locked_bytes = 4096;

  void perform(const request& r) noexcept {
    if (!moves_data(r.what) && r.what != operation::discard) return;
    const std::uint64_t unit = std::max({shape_.block_bytes, shape_.atomic_bytes, least_locked_bytes});
    const std::uint64_t first = r.first * shape_.block_bytes;
    const std::uint64_t end = first + std::uint64_t{r.count} * shape_.block_bytes;
    for (std::uint64_t at = first; at < end;) {
      const std::uint64_t bytes = std::min(end, (at / unit + 1) * unit) - at;
      const std::scoped_lock lock((*locks_)[at / unit % lock_count]);
      if (r.what == operation::read)
        std::memcpy(r.data + (at - first), start_ + at, bytes);
      else if (writes(r.what))
        std::memcpy(start_ + at, r.data + (at - first), bytes);
      else
        std::memset(start_ + at, 0, bytes);
      at += bytes;
    }
  }

  geometry shape_;
  std::unique_ptr<std::array<unit_lock, lock_count>> locks_ = std::make_unique<std::array<unit_lock, lock_count>>();
  std::byte* start_ = nullptr;
};

static_assert(device<memory>);

}  // namespace pmlab::blocks
