// The versions that each block of a volume may hold, and the check of data that was read.
//
// Each write has a version, which grows for each block. Its data has a stamp in each sector: the store's seed, the
// block, the version, and which blocks the write covers. The ledger knows of each block the version that was given out
// last (`issued`) and the one that was acknowledged last. A read is right if
//   * each sector has a stamp of this store and this block, with a version that is not older than the last one that was
//     acknowledged when the read began, and not newer than the last one that was issued when it ended;
//   * the sectors of a block agree, unless a write of it was under way meanwhile;
//   * for each block that it returned from a write of several blocks, no other block of that write, within the same
//     range that the store promises to keep whole, is older.
// Zeros stand for blocks that were never written, or were discarded last.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pmlab::store_bench {

// Blocks that follow each other.
struct block_range {
  std::uint64_t first = 0;
  std::uint32_t count = 0;
  [[nodiscard]] std::uint64_t end() const noexcept { return first + count; }
};

// Thread safety: all of it from any thread, if writes under way do not overlap.
class ledger {
 public:
  // `whole_bytes`: what the store promises to keep whole; a multiple of a block.
  ledger(std::uint64_t blocks, std::uint32_t block_bytes, std::uint64_t seed, std::uint64_t whole_bytes,
         bool discarded_are_zeros);

  [[nodiscard]] std::uint64_t blocks() const noexcept { return cells_.size(); }
  [[nodiscard]] std::uint32_t block_bytes() const noexcept { return block_bytes_; }

  // A write or discard of any of these blocks is under way.
  [[nodiscard]] bool is_busy(block_range of) const noexcept;

  // It was never written, or was discarded last. No write of it is under way.
  [[nodiscard]] bool is_empty(std::uint64_t block) const noexcept;

  // Begins a write, and stamps its data. The version is for `end`.
  std::uint64_t begin_write(block_range of, std::span<std::byte> data) noexcept;
  std::uint64_t begin_discard(block_range of) noexcept;
  // It was acknowledged.
  void end(block_range of, std::uint64_t version) noexcept;

  // Before a read: the versions that it must not fall behind. At least `of.count` of them.
  void begin_read(block_range of, std::span<std::uint64_t> least) const noexcept;
  // After it: nothing, or the error of the first wrong block.
  [[nodiscard]] std::optional<std::string> check(block_range of, std::span<const std::byte> data,
                                                 std::span<const std::uint64_t> least) const;

 private:
  struct cell {
    std::atomic<std::uint64_t> issued{0};
    std::atomic<std::uint64_t> acknowledged{0};
    std::atomic<std::uint64_t> zeros{0};  // the version of its last discard
  };
  // The content of a block as it was read.
  struct seen {
    std::uint64_t version = 0;
    block_range write;  // that it came from
  };

  std::uint64_t next_version(block_range of) noexcept;
  [[nodiscard]] std::optional<std::string> check_block(std::uint64_t block, std::span<const std::byte> data,
                                                       std::uint64_t least, seen& found) const;

  std::vector<cell> cells_;
  std::uint32_t block_bytes_;
  std::uint64_t seed_;
  std::uint64_t whole_blocks_;
  bool discarded_are_zeros_;
};

}  // namespace pmlab::store_bench
