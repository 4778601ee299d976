// Bytes that an operation of a queue has read from flash, before it begins.
//
// They are read without a lock, so they count only if the place is what it was then: each piece has the life of its
// superblock at the time when its read began. The operation looks the place up again, under the lock of the manager; a
// word that leads there, in the same life, has led there all the time.
#pragma once

#include <pmlab/blocks/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace pmlab::stores::detail::kv_ssd {

// The blocks that have these bytes.
struct block_range {
  block_range(std::uint64_t first_byte, std::size_t count, std::uint32_t block_bytes) noexcept
      : first(first_byte / block_bytes),
        bytes(((first_byte + count + block_bytes - 1) / block_bytes - first) * block_bytes),
        offset(first_byte - first * block_bytes) {}

  std::uint64_t first;  // block
  std::size_t bytes;    // bytes of whole blocks
  std::size_t offset;   // offset of the first byte wanted, in these
};

// Belongs to one operation. Its buffers are kept for the next one.
class fetched {
 public:
  struct wanted {
    std::uint64_t first = 0;  // byte of the device
    std::size_t bytes = 0;
    std::uint64_t life = 0;  // life of the superblock
  };
  struct piece {
    wanted of{};
    blocks::buffer blocks{};
    std::size_t offset = 0;
    bool is_unreadable = false;  // its read failed

    [[nodiscard]] std::span<const std::byte> content() const noexcept {
      return std::span<const std::byte>(blocks.bytes()).subspan(offset, of.bytes);
    }
  };

  // The piece that has at least these bytes; nullptr: none.
  [[nodiscard]] const piece* find(std::uint64_t first, std::size_t bytes, std::uint64_t life) const noexcept {
    for (std::size_t i = 0; i < count_; ++i)
      if (pieces_[i].of.first == first && pieces_[i].of.life == life && pieces_[i].of.bytes >= bytes)
        return &pieces_[i];
    return nullptr;
  }
  [[nodiscard]] const piece* find(const wanted& w) const noexcept { return find(w.first, w.bytes, w.life); }

  // A piece to be read into: its blocks are the caller's to fill. It stays where it is until the next one.
  [[nodiscard]] piece& add(const wanted& w, const block_range& range) {
    if (count_ == pieces_.size()) pieces_.emplace_back();
    piece& made = pieces_[count_++];
    made.of = w;
    made.is_unreadable = false;
    made.offset = range.offset;
    if (made.blocks.size() < range.bytes) made.blocks = blocks::buffer(range.bytes);
    return made;
  }
  // The read of the last piece failed.
  void fail_last() noexcept { pieces_[count_ - 1].is_unreadable = true; }
  void clear() noexcept { count_ = 0; }
  // They are bytes of a piece, and stay as they are until `clear`.
  [[nodiscard]] bool has(std::span<const std::byte> bytes) const noexcept {
    const std::less_equal<> before;
    for (std::size_t i = 0; i < count_; ++i) {
      const std::span<const std::byte> all = pieces_[i].blocks.bytes();
      if (before(all.data(), bytes.data()) && before(bytes.data() + bytes.size(), all.data() + all.size())) return true;
    }
    return false;
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

 private:
  std::vector<piece> pieces_;
  std::size_t count_ = 0;
};

}  // namespace pmlab::stores::detail::kv_ssd
