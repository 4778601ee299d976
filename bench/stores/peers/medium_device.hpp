// A block device in a medium: persistent memory as the fast device of a peer that knows blocks only.
//
// A write is a copy that goes around the caches, and a fence: durable when it completes. It takes the time that the
// medium takes, in the thread that submits it, as a store to such memory does. A crash may leave any part of a block.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/immediate_queue.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace pmlab::stores {

// Thread safety: as blocks/device.hpp requires.
template <media::medium Medium>
class medium_device {
 public:
  static constexpr std::string_view layout_name = "medium_device";
  static constexpr std::uint32_t block_bytes = blocks::least_block_bytes;

  // The device `layout_name` of `medium`, which outlives it; made with `bytes` bytes if there is none. Throws
  // pmlab::error: no space, or it has another size.
  medium_device(Medium& medium, std::uint64_t bytes) : medium_(medium) {
    shape_ = {.blocks = bytes / block_bytes, .block_bytes = block_bytes, .atomic_bytes = 0, .volatile_cache = false};
    blocks::check_geometry(shape_, name());
    std::atomic<std::uint64_t>& root = *medium.named_root(layout_name, layout_name, 1).word;
    if (root.load(std::memory_order_acquire) == 0) {
      typename Medium::publication change(medium);
      auto* const made =
          static_cast<header*>(change.allocate(sizeof(header) + shape_.bytes(), media::cache_line_bytes));
      if (made == nullptr)
        throw error("no space in " + medium.name() + " for a device of " + std::to_string(bytes) + " bytes",
                    "give it more space");
      made->bytes = shape_.bytes();
      media::persist(medium, *made);
      change.store(root, medium.locate(made).word());
      change.commit();
    }
    const auto* const there = medium.resolve(media::pointer<header>(root.load(std::memory_order_acquire)));
    if (there->bytes != shape_.bytes())
      throw error("the device in " + medium.name() + " has " + std::to_string(there->bytes) + " bytes",
                  "open it with that size");
    start_ = reinterpret_cast<std::byte*>(const_cast<header*>(there) + 1);
  }
  medium_device(const medium_device&) = delete;
  medium_device& operator=(const medium_device&) = delete;

  using queue = blocks::immediate_queue<medium_device>;

  [[nodiscard]] blocks::geometry shape() const noexcept { return shape_; }
  // The name of the medium: "emulated:aep".
  [[nodiscard]] std::string name() const { return medium_.name(); }
  [[nodiscard]] std::string failure() const { return {}; }

 private:
  friend queue;

  struct alignas(media::cache_line_bytes) header {
    std::uint64_t bytes;
  };

  void perform(const blocks::request& r) noexcept {
    std::byte* const place = start_ + r.first * block_bytes;
    const std::size_t bytes = std::size_t{r.count} * block_bytes;
    media::begin_operation(medium_);
    if (r.what == blocks::operation::read) {
      medium_.annotate_read(place, bytes);
      std::memcpy(r.data, place, bytes);
    } else if (blocks::writes(r.what)) {
      medium_.copy(place, r.data, bytes);
      medium_.fence();
    }
    media::end_operation(medium_);
  }

  Medium& medium_;
  blocks::geometry shape_;
  std::byte* start_ = nullptr;
};

}  // namespace pmlab::stores
