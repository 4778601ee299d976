// The headers of a store's two drives: made once, checked whenever the store is opened.
//
// (H1) < (H2) < (H3) < (H4): the capacity drive is forming; the first manifest is durable; the staging drive is ready:
// this makes the store; the capacity drive is ready. A crash before (H3) leaves drives on which a store can be made, a
// crash behind it a store. So a blank drive in place of one of a store differs from an interrupted making.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/stores/tiered/layout.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace pmlab::stores::detail::tiered {

[[nodiscard]] inline std::string_view name_of(drive_role r) noexcept {
  return r == drive_role::staging ? "staging" : "capacity";
}

[[nodiscard]] inline std::uint64_t checksum_of(const drive_header& h) noexcept {
  return checksum(&h, offsetof(drive_header, checksum), 4);
}
[[nodiscard]] inline std::uint64_t checksum_of(const drive_epoch& e) noexcept {
  return checksum(&e, offsetof(drive_epoch, checksum), 6);
}
[[nodiscard]] inline bool has_right_checksum(const drive_epoch& e) noexcept {
  return is_checksum(e.checksum, &e, offsetof(drive_epoch, checksum), 6);
}

// Fills in the first block of a drive.
inline void put_header(std::span<std::byte> block, drive_header h, drive_epoch e) noexcept {
  h.checksum = checksum_of(h);
  std::memcpy(block.data(), &h, sizeof h);
  if (h.version < drive_header::first_version_with_epochs) return;
  e.checksum = checksum_of(e);
  std::memcpy(block.data() + drive_epoch::offset, &e, sizeof e);
}

template <blocks::device Device>
class drive_opener {
 public:
  drive_opener(Device& device, drive_role role) : device_(device), drive_(device), role_(role) {
    blocks::buffer block(device.shape().block_bytes);
    drive_.read(0, block.bytes());
    std::memcpy(&header_, block.data(), sizeof header_);
    is_blank_ = std::all_of(block.data(), block.data() + blocks::least_block_bytes,
                            [](std::byte b) { return b == std::byte{0}; });
    is_ours_ = header_.magic == drive_header::right_magic && (!is_of_a_known_version() || has_right_checksum());
  }

  [[nodiscard]] const drive_header& header() const noexcept { return header_; }
  [[nodiscard]] bool is_blank() const noexcept { return is_blank_; }
  [[nodiscard]] bool is_ready() const noexcept {
    return is_ours_ && is_of_a_known_version() && header_.state == drive_state::ready;
  }
  [[nodiscard]] bool is_forming() const noexcept {
    return is_ours_ && is_of_a_known_version() && header_.state == drive_state::forming;
  }

  // Throws pmlab::error unless it is a drive of this role, and as large as it was.
  void check() const {
    const std::string drive = "the " + std::string(name_of(role_)) + " drive (" + device_.name() + ")";
    if (is_blank_)
      throw error(drive + " is blank, and the other drive belongs to a tiered store", "give both drives of the store");
    if (!is_ours_)
      throw error(drive + " holds something else, or its header is damaged",
                  "give the drive of the store; option `format` makes an empty store, and loses all that is there");
    if (!is_of_a_known_version())
      throw error(drive + " has version " + std::to_string(header_.version) + " of the layout, not " +
                      std::to_string(drive_header::oldest_version) + " to " +
                      std::to_string(drive_header::current_version),
                  "use the version of pmlab that made it");
    if (header_.role != role_)
      throw error(drive + " is the " + std::string(name_of(header_.role)) + " drive of a store",
                  "the drives are swapped: exchange them");
    const blocks::geometry shape = device_.shape();
    if (header_.block_bytes != shape.block_bytes)
      throw error(drive + " has blocks of " + std::to_string(shape.block_bytes) +
                      " bytes, and the store was made with " + std::to_string(header_.block_bytes),
                  "open it with the same size of blocks");
    if (header_.blocks > shape.blocks)
      throw error(drive + " has " + std::to_string(shape.blocks) + " blocks, and the store was made with " +
                      std::to_string(header_.blocks),
                  "the file was cut off: restore it");
  }

  // Durable on return, with the epoch of a store that no session has had.
  void write(drive_header h, drive_state state) {
    const blocks::geometry shape = device_.shape();
    h.role = role_;
    h.state = state;
    h.block_bytes = shape.block_bytes;
    h.blocks = shape.blocks;
    h.checksum = checksum_of(h);
    blocks::buffer block(shape.block_bytes);
    put_header(block.bytes(), h, {});
    drive_.write_durable(0, block.bytes(), blocks::stream::manifest);
    header_ = h;
    is_ours_ = true;
    is_blank_ = false;
  }

  [[nodiscard]] blocks::synchronous<Device>& drive() noexcept { return drive_; }

 private:
  // Headers of other versions may have other fields.
  [[nodiscard]] bool is_of_a_known_version() const noexcept {
    return header_.version >= drive_header::oldest_version && header_.version <= drive_header::current_version;
  }
  [[nodiscard]] bool has_right_checksum() const noexcept {
    return is_checksum(header_.checksum, &header_, offsetof(drive_header, checksum), 4);
  }

  Device& device_;
  blocks::synchronous<Device> drive_;
  drive_role role_;
  drive_header header_{};
  bool is_blank_ = false;
  bool is_ours_ = false;
};

}  // namespace pmlab::stores::detail::tiered
