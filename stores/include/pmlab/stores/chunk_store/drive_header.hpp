// Block 0 of a chunk store's drive: it says whose drive it is. Made once, checked whenever the store is opened.
#pragma once

#include <pmlab/base/checksum.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/stores/chunk_store/chunk.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace pmlab::stores::detail::chunk_store {

[[nodiscard]] inline std::uint64_t checksum_of(const drive_header& h) noexcept {
  return pmlab::checksum(&h, offsetof(drive_header, checksum));
}

template <blocks::device Device>
[[nodiscard]] drive_header read_header(Device& device) {
  const blocks::buffer block = blocks::read_block(device, 0, blocks::stream::manifest);
  drive_header header;
  std::memcpy(static_cast<void*>(&header), block.data(), sizeof header);
  return header;
}

// Throws pmlab::error: the drive is too small for a chunk of this shape, or has more blocks than entries can name.
template <blocks::device Device>
void check_room(Device& device, const chunk_shape& shape) {
  const std::uint64_t blocks = device.shape().blocks;
  if (blocks > nowhere || blocks < std::uint64_t{shape.blocks} + 1)
    throw error("device " + device.name() + " has " + std::to_string(blocks) + " blocks",
                "a chunk store needs at least one chunk and a block, and at most 2^32 - 3 blocks");
}

// Throws pmlab::error: `store` ("the chunk store in ...") was made for `blocks` blocks of `block_bytes`, and `drive`
// has another size.
inline void check_size(const std::string& store, std::uint64_t blocks, std::uint64_t block_bytes,
                       const std::string& drive, const blocks::geometry& there) {
  if (blocks != there.blocks || block_bytes != there.block_bytes)
    throw error(store + " was made for a drive of " + std::to_string(blocks) + " blocks of " +
                    std::to_string(block_bytes) + " bytes, and " + drive + " has " + std::to_string(there.blocks) +
                    " of " + std::to_string(there.block_bytes),
                "open it with its own drive");
}

// Throws pmlab::error: block 0 of `drive` ("device ...") is damaged.
inline void check_checksum(const std::string& drive, const drive_header& h) {
  if (!is_checksum(h.checksum, &h, offsetof(drive_header, checksum)))
    throw error("block 0 of " + drive + " is damaged", "restore the drive from a copy");
}
// Throws pmlab::error: another release of pmlab wrote block 0 of `drive`.
inline void check_version(const std::string& drive, const drive_header& h, std::uint64_t right) {
  if (h.version != right)
    throw error(drive + " has version " + std::to_string(h.version) +
                    " of the layout, and this program reads version " + std::to_string(right),
                "open it with the release of pmlab that wrote it");
}

// For a store whose records are elsewhere: writes `header`, but for its checksum; durable on return. `records`: what
// another store is opened with. Throws pmlab::error: the drive belongs to one, and `format` is false; it failed.
template <blocks::device Device>
void claim_drive(Device& device, drive_header header, bool format, const std::string& records) {
  const drive_header there = read_header(device);
  if (there.magic == drive_header::right_magic && there.identity != header.identity && !format)
    throw error("device " + device.name() + " belongs to another chunk store",
                "open that store with its own " + records + ", or give the option format to lose its data");
  header.checksum = checksum_of(header);
  blocks::buffer block(device.shape().block_bytes);
  std::memcpy(block.data(), &header, sizeof header);
  blocks::synchronous(device).write_durable(0, block.bytes(), blocks::stream::manifest);
}

// For a store whose records are elsewhere. `header`: as claim_drive has written it. `place`: where the records are.
// Throws pmlab::error: it is another drive, its block 0 is damaged, or of another version; it failed.
template <blocks::device Device>
void check_drive(Device& device, const drive_header& header, const std::string& place) {
  const std::string drive = "device " + device.name();
  const drive_header there = read_header(device);
  if (there.magic != drive_header::right_magic || there.identity != header.identity)
    throw error(drive + " is not the drive of the chunk store " + place, "give the drive that this store was made on");
  check_checksum(drive, there);
  check_version(drive, there, header.version);
  if (there.chunk_blocks != header.chunk_blocks)
    throw error("the size of the chunks of the chunk store " + place + " is damaged: " + drive + " has another one",
                "restore the records of the store from a copy");
}

}  // namespace pmlab::stores::detail::chunk_store
