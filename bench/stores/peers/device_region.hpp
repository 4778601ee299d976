// A part of a block device as a device of its own.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/any_device.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pmlab::stores {

// `count` blocks of a device, which outlives it, from `first` on. Thread safety: as the device.
class device_region {
 public:
  // Throws pmlab::error if the device does not have them.
  device_region(blocks::any_device& of, std::uint64_t first, std::uint64_t count)
      : device_(of), first_(first), shape_(of.shape()) {
    if (count == 0 || first > shape_.blocks || count > shape_.blocks - first)
      throw error("device " + of.name() + " has " + std::to_string(shape_.blocks) +
                      " blocks: too few for a region of " + std::to_string(count) + " from " + std::to_string(first),
                  "make it larger");
    shape_.blocks = count;
  }

  class queue {
   public:
    queue(device_region& of, unsigned depth) : region_(of), inner_(of.device_, depth) {}

    [[nodiscard]] std::size_t submit(std::span<const blocks::request> requests) {
      moved_.assign(requests.begin(), requests.end());
      for (blocks::request& r : moved_) {
        blocks::check_request(region_.shape_, r, region_.name());
        // Blocks beyond the region are not the next one's: the device has none of these either.
        r.first = blocks::has_blocks_of(region_.shape_, r) ? r.first + region_.first_ : ~std::uint64_t{0};
      }
      return inner_.submit(moved_);
    }
    [[nodiscard]] std::size_t reap(std::span<blocks::completion> completions, std::size_t at_least) {
      return inner_.reap(completions, at_least);
    }
    [[nodiscard]] std::size_t in_flight() const { return inner_.in_flight(); }
    [[nodiscard]] unsigned depth() const { return inner_.depth(); }

   private:
    device_region& region_;
    blocks::any_device::queue inner_;
    std::vector<blocks::request> moved_;
  };

  [[nodiscard]] blocks::geometry shape() const noexcept { return shape_; }
  [[nodiscard]] std::string name() const { return device_.name(); }
  [[nodiscard]] std::string failure() const { return device_.failure(); }

 private:
  blocks::any_device& device_;
  std::uint64_t first_;
  blocks::geometry shape_;
};

}  // namespace pmlab::stores
