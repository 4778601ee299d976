// The blocks of a string index: a key's record, and bytes by themselves.
#pragma once

#include <pmlab/media/lines.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <string_view>

namespace pmlab::strings::detail {

// Small blocks begin with a line, so that a short key costs one.
[[nodiscard]] constexpr std::size_t alignment_of(std::size_t bytes) noexcept {
  constexpr std::size_t small = 1024;
  constexpr std::size_t usual = 16;
  return bytes <= small ? media::cache_line_bytes : usual;
}

// Length and bytes, which never change once the block can be found.
//
//   0           8
//   | bytes     | the bytes themselves ...
struct bytes_block {
  std::atomic<std::uint64_t> bytes{0};

  [[nodiscard]] std::size_t size() const noexcept { return bytes.load(std::memory_order_acquire); }
  [[nodiscard]] std::string_view text() const noexcept { return {reinterpret_cast<const char*>(this + 1), size()}; }
  // Whole lines, so that the keys of one index need few sizes of blocks. So are records.
  [[nodiscard]] static constexpr std::size_t block_bytes(std::size_t size) noexcept {
    return media::whole_lines(sizeof(bytes_block) + size);
  }
  [[nodiscard]] std::size_t block_bytes() const noexcept { return block_bytes(size()); }
};

// A key, once. A key of up to 40 bytes and its value share a line.
//
//   0      8       16      24
//   | next | value | bytes | the key ...
struct record {
  std::atomic<std::uint64_t> next{0};   // next record of keys with one hash; otherwise 0
  std::atomic<std::uint64_t> value{0};  // the value, or where its block is (0: no bytes)
  std::atomic<std::uint64_t> bytes{0};  // bytes of the key; neither they nor the key ever change

  [[nodiscard]] std::size_t size() const noexcept { return bytes.load(std::memory_order_acquire); }
  [[nodiscard]] std::string_view key() const noexcept { return {reinterpret_cast<const char*>(this + 1), size()}; }
  [[nodiscard]] static constexpr std::size_t block_bytes(std::size_t size) noexcept {
    return media::whole_lines(sizeof(record) + size);
  }
  [[nodiscard]] std::size_t block_bytes() const noexcept { return block_bytes(size()); }
};

// Allocates a block of either kind with these bytes as a part of `change`, and starts to write it back: the commit that
// makes it findable waits for that. nullptr: no space.
template <class Block, media::medium Medium, media::publication Publication, class Fill>
[[nodiscard]] Block* make_block(Medium& medium, Publication& change, std::string_view bytes, Fill&& fill) {
  const std::size_t size = Block::block_bytes(bytes.size());
  void* const room = change.allocate(size, alignment_of(size));
  if (room == nullptr) return nullptr;
  auto* const made = ::new (room) Block;
  if (!bytes.empty()) std::memcpy(reinterpret_cast<char*>(made + 1), bytes.data(), bytes.size());
  made->bytes.store(bytes.size(), std::memory_order_relaxed);
  fill(*made);
  medium.flush(made, sizeof(Block) + bytes.size());  // (B1)
  medium.fence();                                    // (B2)
  // (B1) < (B2) < commit: nothing leads to a block whose bytes are not durable.
  return made;
}

// Releases a block as part of `change`.
template <class Block, media::publication Publication>
void release_block(Publication& change, Block& block) {
  change.release(&block, block.block_bytes());
}

}  // namespace pmlab::strings::detail
