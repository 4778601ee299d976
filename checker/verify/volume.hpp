// A store of blocks under verification: one volume, opened on a memory and drives, behind virtual calls.
//
// Every block that is written carries the number of its write and its own address, in each of its words: a torn block,
// a block of another place, and a block of an older write can all be told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::verify {

class crash_image;

struct volume_shape {
  std::uint32_t block_bytes = 512;
  std::uint32_t blocks = 12;
  std::uint32_t chunk_blocks =
      4;  // a write within a chunk is atomic; of a larger one, the part in each chunk. At most 16
  bool reads_are_atomic = true;  // within a chunk; otherwise of each block by itself
  bool reads_outrun = false;     // a read may return a write under way that a crash drops
  bool groups = false;           // it has write_group
  bool discards = false;         // it has discard, after which blocks read as zeros
  bool fills_up = false;         // a write may answer "full", though the memory refused it nothing
};

// Consecutive blocks.
struct block_range {
  std::uint64_t first = 0;
  std::uint32_t count = 1;
};

// Unwritten blocks read as zeros. Data begin at a multiple of blocks::data_alignment.
class volume_target {
 public:
  volume_target() = default;
  volume_target(const volume_target&) = delete;
  volume_target& operator=(const volume_target&) = delete;
  virtual ~volume_target() = default;

  // Durable on return. False: no room, and nothing has changed (of the chunk for which there was none).
  virtual bool write(std::uint64_t first, std::span<const std::byte> data) = 0;
  virtual void read(std::uint64_t first, std::span<std::byte> data) = 0;
  // Several ranges of one chunk at once; `data` has their blocks one after the other.
  virtual bool write_group(std::span<const block_range> /*ranges*/, std::span<const std::byte> /*data*/) {
    return false;
  }
  // Durable on return.
  virtual bool discard(block_range /*range*/) { return false; }
  // The first violated invariant; "": none.
  virtual std::string check() { return {}; }
  // Bytes of the memory that it holds; nothing: unknown.
  virtual std::optional<std::uint64_t> held_bytes() { return std::nullopt; }
};

struct volume_kind {
  volume_shape shape{};
  // Instrumented; on the memory and drives that the machine observes.
  std::function<std::unique_ptr<volume_target>()> open_simulated{};
  std::unique_ptr<volume_target> (*open_image)(crash_image& image) = nullptr;
};

// ---- what blocks hold ----

inline void fill_block(std::span<std::byte> block, std::uint32_t number, std::uint64_t address) noexcept {
  const std::uint64_t word = number == 0 ? 0 : std::uint64_t{number} << 32 | (address & 0xffffffffU);
  for (std::size_t at = 0; at < block.size(); at += sizeof word) std::memcpy(block.data() + at, &word, sizeof word);
}

// Sets `number` to the number of the write that the block carries, 0 for zeros. "" or why no write wrote this.
[[nodiscard]] inline std::string read_block(std::span<const std::byte> block, std::uint64_t address,
                                            std::uint32_t& number) {
  std::uint64_t first = 0;
  std::memcpy(&first, block.data(), sizeof first);
  const auto words = [](std::uint64_t w) {
    return w == 0 ? std::string("zeros")
                  : "write " + std::to_string(w >> 32) + " of block " + std::to_string(w & 0xffffffffU);
  };
  for (std::size_t at = 0; at < block.size(); at += sizeof first) {
    std::uint64_t w = 0;
    std::memcpy(&w, block.data() + at, sizeof w);
    if (w != first)
      return "block " + std::to_string(address) + " is torn: it begins with " + words(first) + ", and at byte " +
             std::to_string(at) + " holds " + words(w);
  }
  if (first != 0 && (first & 0xffffffffU) != address)
    return "block " + std::to_string(address) + " holds " + words(first);
  number = static_cast<std::uint32_t>(first >> 32);
  return {};
}

}  // namespace pmlab::verify
