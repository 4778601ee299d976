// A chunk store as a subject: one volume of three chunks, on a small drive.
#pragma once

#include "checker/verify/chunk_volume.hpp"
#include "checker/verify/register_volume.hpp"
#include <pmlab/stores/chunk_store.hpp>

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pmlab::verify {

// A ring of 3 entries is merged often; one of 9, on the small drive, lies in two lines. A drive of 27 blocks leaves
// three free ones beside two copies of the volume's chunks: blocks are used again soon. `AtomicBytes`: the unit that
// the drive keeps whole; a block: overwrites are made in place. `Merge`: how a ring gets room. `Container`: the medium,
// or records_on_blocks: these take 5 to 7 blocks of the drive, and a volume of four chunks has a record in two sectors.
template <class Medium, class Drive, std::uint32_t AtomicBytes,
          stores::merge_policy Merge = stores::merge_policy::remap, class Container = Medium>
class chunk_store_subject {
  static constexpr bool on_blocks = std::same_as<Container, stores::records_on_blocks>;
  using store = stores::chunk_store<Container, Drive>;

 public:
  static constexpr bool by_copy = Merge == stores::merge_policy::copy;
  static constexpr std::string_view layout_name =
      on_blocks          ? (AtomicBytes == 0 ? "chunk_store_on_blocks" : "chunk_store_on_whole_blocks")
      : AtomicBytes == 0 ? (by_copy ? "chunk_store_copy" : "chunk_store")
      : by_copy          ? "chunk_store_copy_in_place"
                         : "chunk_store_in_place";
  // Without a promise a drive keeps 512 bytes whole: half a block.
  static constexpr std::uint32_t block_bytes = AtomicBytes == 0 ? 1024 : AtomicBytes;
  static constexpr volume_shape shape{.block_bytes = block_bytes,
                                      .blocks = on_blocks ? 16 : 12,
                                      .chunk_blocks = 4,
                                      .reads_are_atomic = true,
                                      .reads_outrun = AtomicBytes != 0,  // those beside a write in place
                                      .groups = true,
                                      .discards = true,
                                      .fills_up = true};
  static constexpr blocks::geometry drive{
      .blocks = on_blocks ? 26 : 27, .block_bytes = block_bytes, .atomic_bytes = AtomicBytes, .volatile_cache = true};

  // A drive without space for all blocks of the volume.
  static constexpr blocks::geometry small_drive{
      .blocks = on_blocks ? 18 : 11, .block_bytes = block_bytes, .atomic_bytes = AtomicBytes, .volatile_cache = true};

  chunk_store_subject(Medium& medium, Drive& device)
      : store_(opened(medium, device,
                      {.chunk_bytes = 4 * block_bytes, .ring = ring_on(device), .merge = Merge, .identity = {1, 2}})),
        disk_(store_.volume("disk", {.bytes = shape.blocks * block_bytes})) {}

  bool write(std::uint64_t first, std::span<const std::byte> data) { return disk_.write(first, data); }
  void read(std::uint64_t first, std::span<std::byte> data) { disk_.read(first, data); }
  bool write_group(std::span<const block_range> ranges, std::span<const std::byte> data) {
    return disk_.write_group(ranges, data);
  }
  bool discard(block_range r) { return disk_.discard(r); }
  std::string check() {
    const indexes::check_report report = store_.check();
    return report.ok() ? std::string() : report.violations.front();
  }
  std::optional<std::uint64_t> held_bytes() { return on_blocks ? 0 : store_.stats().medium_bytes; }

 private:
  [[nodiscard]] static std::uint32_t ring_on(const Drive& device) {
    return !on_blocks && device.shape().blocks == small_drive.blocks ? 9 : 3;
  }

  static store opened(Medium& medium, Drive& device, const stores::chunk_store_options& options) {
    if constexpr (on_blocks)
      return store::open(device, options);
    else
      return store::open(medium, device, options);
  }

  store store_;
  chunk_volume<typename store::volume_handle, block_bytes> disk_;
};

}  // namespace pmlab::verify
