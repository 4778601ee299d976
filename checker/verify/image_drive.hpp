// The drive of a crash image as a block device: the versions that the crash kept, and above them the writes since.
//
// Nothing is copied until it is written. Nothing is logged here, and each request takes effect at once: the crash
// consistency of the recovery itself is examined on the simulated machine.
#pragma once

#include "checker/simulator/machine/persistent_drive.hpp"
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/immediate_queue.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace pmlab::verify {

// Thread safety: none.
class image_drive {
 public:
  explicit image_drive(const blocks::geometry& shape)
      : shape_(shape), base_(shape.bytes() / simulator::sector_bytes), now_(base_.size()), own_(shape.bytes()) {}
  image_drive(const image_drive&) = delete;
  image_drive& operator=(const image_drive&) = delete;

  // Where the content of each sector is: the caller fills it, then calls `begin`. What it points to stays unchanged
  // while the image is in use.
  [[nodiscard]] std::span<const std::byte*> base() noexcept { return base_; }
  void begin() { now_ = base_; }

  using queue = blocks::immediate_queue<image_drive>;

  [[nodiscard]] blocks::geometry shape() const noexcept { return shape_; }
  [[nodiscard]] std::string name() const { return "image"; }
  [[nodiscard]] std::string failure() const { return {}; }

 private:
  friend queue;

  void perform(const blocks::request& r) noexcept {
    if (r.what == blocks::operation::flush) return;
    const std::size_t per_block = shape_.block_bytes / simulator::sector_bytes;
    const std::size_t first = r.first * per_block;
    for (std::size_t s = 0; s < r.count * per_block; ++s) {
      const std::byte*& at = now_[first + s];
      if (r.what == blocks::operation::read) {
        std::memcpy(r.data + s * simulator::sector_bytes, at, simulator::sector_bytes);
        continue;
      }
      std::byte* const own = own_.data() + (first + s) * simulator::sector_bytes;
      if (r.what == blocks::operation::discard) {
        // The old content, or others: (B4).
        if ((first + s) % 3 != 0) continue;
        std::memset(own, 0xd5, simulator::sector_bytes);
      } else {
        std::memcpy(own, r.data + s * simulator::sector_bytes, simulator::sector_bytes);
      }
      at = own;
    }
  }

  blocks::geometry shape_;
  std::vector<const std::byte*> base_;
  std::vector<const std::byte*> now_;
  std::vector<std::byte> own_;
};

static_assert(blocks::device<image_drive>);

}  // namespace pmlab::verify
