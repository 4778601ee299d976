// A chunk store whose records are values of a key-value device, as a subject: a volume of four chunks on one small
// drive, the device's flash on another, and its memory, so that a crash state is of all three.
#include "checker/verify/chunk_volume.hpp"
#include "checker/verify/register_volume.hpp"
#include "checker/verify/small_kv_device.hpp"
#include <pmlab/stores/chunk_store.hpp>
#include <pmlab/stores/kv_ssd.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pmlab::verify {
namespace {

template <class Medium, class Drive>
class chunk_store_on_kv {
  using pairs = stores::kv_device<Medium, Drive>;
  using store = stores::chunk_store<stores::records_on_kv<pairs>, Drive>;

 public:
  static constexpr std::string_view layout_name = "chunk_store_on_kv";
  static constexpr volume_shape shape{.block_bytes = 1024,
                                      .blocks = 16,
                                      .chunk_blocks = 4,
                                      .reads_are_atomic = true,
                                      .groups = true,
                                      .discards = true,
                                      .fills_up = true};
  // A block is torn. Some blocks are free beside a copy of a chunk: they are used again soon.
  static constexpr blocks::geometry drive{.blocks = 22, .block_bytes = 1024, .atomic_bytes = 0, .volatile_cache = true};
  // 24 superblocks of two blocks, and a header: records are moved to flash, and collected, within a round.
  static constexpr blocks::geometry second_drive{
      .blocks = 49, .block_bytes = 512, .atomic_bytes = 0, .volatile_cache = true};

  chunk_store_on_kv(Medium& medium, Drive& data, Drive& flash)
      : pairs_(pairs::open(medium, flash, small_kv_device)),
        // The records of half of the chunks' parts are cached.
        store_(store::open(pairs_, data, {.chunk_bytes = 4096, .ring = 3, .identity = {3, 4}},
                           {.cache_bytes = std::uint64_t{48} << 10})),
        disk_(store_.volume("disk", {.bytes = shape.blocks * shape.block_bytes})) {}

  bool write(std::uint64_t first, std::span<const std::byte> data) { return disk_.write(first, data); }
  void read(std::uint64_t first, std::span<std::byte> data) { disk_.read(first, data); }
  bool write_group(std::span<const block_range> ranges, std::span<const std::byte> data) {
    return disk_.write_group(ranges, data);
  }
  bool discard(block_range r) { return disk_.discard(r); }
  std::string check() {
    const indexes::check_report of_pairs = pairs_.check();
    if (!of_pairs.ok()) return of_pairs.violations.front();
    const indexes::check_report report = store_.check();
    return report.ok() ? std::string() : report.violations.front();
  }
  std::optional<std::uint64_t> held_bytes() { return pairs_.stats().medium_bytes; }

 private:
  pairs pairs_;
  store store_;
  chunk_volume<typename store::volume_handle, shape.block_bytes> disk_;
};

const bool registered = register_volume<chunk_store_on_kv>();

}  // namespace
}  // namespace pmlab::verify
