// The form of an index block: a block of the drive with the records of some chunks, or with volumes.
//
//   | magic | checksum | sequence | identity (2 words) | number | 0 | 0 |  payload ...
//
// Each index block has two places on the drive, which are written in turn: sequence n goes to place n modulo 2. The
// place with the higher sequence of those that are whole has the content. So a write that a crash tears leaves the
// content before it, on a drive that promises nothing about whole blocks too.
#pragma once

#include <pmlab/base/checksum.hpp>
#include <pmlab/media/lines.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

namespace pmlab::stores::detail::chunk_store {

struct index_block_head {
  static constexpr std::array<char, 8> right_magic{'P', 'M', 'L', 'I', 'N', 'D', 'E', 'X'};
  static constexpr std::array<char, 8> forgotten_magic{'P', 'M', 'L', 'F', 'O', 'R', 'G', 'T'};

  std::array<char, 8> magic = right_magic;
  std::uint64_t checksum = 0;  // checksum of all after it
  std::uint64_t sequence = 0;
  std::array<std::uint64_t, 2> identity{};  // identity of the store
  std::uint64_t number = 0;                 // number of the index block
  std::array<std::uint64_t, 2> unused{};
};
static_assert(sizeof(index_block_head) == media::cache_line_bytes && std::is_trivially_copyable_v<index_block_head>);

// Where the index blocks of a store are on its drive.
struct index_layout {
  static constexpr std::uint32_t places = 2;

  std::uint32_t block_bytes = 4096;
  std::uint64_t first = 0;   // block of the drive
  std::uint32_t blocks = 0;  // index blocks
  std::array<std::uint64_t, 2> identity{};

  [[nodiscard]] std::uint32_t payload_bytes() const noexcept {
    return block_bytes - static_cast<std::uint32_t>(sizeof(index_block_head));
  }
  // The block of the drive for this sequence of an index block.
  [[nodiscard]] std::uint64_t place(std::uint32_t number, std::uint64_t sequence) const noexcept {
    return first + std::uint64_t{number} * places + sequence % places;
  }
  [[nodiscard]] std::uint64_t end() const noexcept { return first + std::uint64_t{blocks} * places; }
};

[[nodiscard]] inline std::byte* payload_of(std::span<std::byte> block) noexcept {
  return block.data() + sizeof(index_block_head);
}
[[nodiscard]] inline const std::byte* payload_of(std::span<const std::byte> block) noexcept {
  return block.data() + sizeof(index_block_head);
}

[[nodiscard]] inline index_block_head head_of(std::span<const std::byte> block) noexcept {
  index_block_head head;
  std::memcpy(static_cast<void*>(&head), block.data(), sizeof head);
  return head;
}
// What the checksum of an index block covers.
[[nodiscard]] inline std::span<const std::byte> summed_part_of(std::span<const std::byte> block) noexcept {
  return block.subspan(offsetof(index_block_head, sequence));
}

// Gives a block with a payload its head.
inline void seal(std::span<std::byte> block, const index_layout& layout, std::uint32_t number,
                 std::uint64_t sequence) noexcept {
  index_block_head head;
  head.sequence = sequence;
  head.identity = layout.identity;
  head.number = number;
  std::memcpy(block.data(), &head, sizeof head);
  const std::span<const std::byte> summed = summed_part_of(block);
  head.checksum = checksum(summed.data(), summed.size());
  std::memcpy(block.data(), &head, sizeof head);
}

// True: the block is whole, and is this index block of this store.
[[nodiscard]] inline bool is_whole(std::span<const std::byte> block, const index_layout& layout,
                                   std::uint32_t number) noexcept {
  const index_block_head head = head_of(block);
  const std::span<const std::byte> summed = summed_part_of(block);
  return head.magic == index_block_head::right_magic && head.identity == layout.identity && head.number == number &&
         is_checksum(head.checksum, summed.data(), summed.size());
}

// The head of a place that a write had left torn, and that is used no more until the next write of it: never whole.
[[nodiscard]] inline index_block_head forgotten_head(const index_layout& layout, std::uint32_t number) noexcept {
  constexpr std::size_t after = offsetof(index_block_head, sequence);
  index_block_head head;
  head.magic = index_block_head::forgotten_magic;
  head.identity = layout.identity;
  head.number = number;
  head.checksum = checksum(&head.sequence, sizeof head - after);
  return head;
}
[[nodiscard]] inline bool is_forgotten(std::span<const std::byte> block, const index_layout& layout,
                                       std::uint32_t number) noexcept {
  constexpr std::size_t after = offsetof(index_block_head, sequence);
  index_block_head right = forgotten_head(layout, number);
  const std::uint64_t there = head_of(block).checksum;
  if (is_checksum(there, &right.sequence, sizeof right - after)) right.checksum = there;
  return std::memcmp(block.data(), &right, sizeof right) == 0;
}
// As a release before forgot a place; also what a drive returns that has lost the block.
[[nodiscard]] inline bool has_no_head(std::span<const std::byte> block) noexcept {
  return std::ranges::all_of(block.first(sizeof(index_block_head)), [](std::byte b) { return b == std::byte{}; });
}

}  // namespace pmlab::stores::detail::chunk_store
