// The volume of a chunk store under verification, in blocks: the same for each container of the store.
#pragma once

#include "checker/verify/volume.hpp"
#include <pmlab/stores/chunk_store.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace pmlab::verify {

// Changes are durable on return. False: no room, and nothing has changed (of the chunk for which there was none).
template <class Volume, std::uint32_t BlockBytes>
class chunk_volume {
 public:
  explicit chunk_volume(Volume disk) : disk_(std::move(disk)) {}

  bool write(std::uint64_t first, std::span<const std::byte> data) {
    return unless_full([&] { disk_.write(first * BlockBytes, data); });
  }
  void read(std::uint64_t first, std::span<std::byte> data) { disk_.read(first * BlockBytes, data); }
  bool write_group(std::span<const block_range> ranges, std::span<const std::byte> data) {
    std::vector<typename Volume::part> parts;
    for (const block_range& r : ranges) {
      const std::size_t bytes = std::size_t{r.count} * BlockBytes;
      parts.push_back({r.first * BlockBytes, data.first(bytes)});
      data = data.subspan(bytes);
    }
    return unless_full([&] { disk_.write_group(parts); });
  }
  bool discard(block_range r) {
    return unless_full([&] { disk_.discard(r.first * BlockBytes, std::uint64_t{r.count} * BlockBytes); });
  }

 private:
  template <class Action>
  static bool unless_full(Action&& action) {
    try {
      action();
      return true;
    } catch (const stores::chunk_store_full&) {
      return false;
    }
  }

  Volume disk_;
};

}  // namespace pmlab::verify
