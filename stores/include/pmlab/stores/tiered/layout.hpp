// What a tiered store keeps on its drives.
//
//   each drive      | header | segment | segment | ...
//   log class       | header | manifest 0 | manifest 1 | segment | segment | ...
//   segment         groups of log records, each beginning at a block; or pages of keys; or values
//   group           | header | record | record | ... | padding |        one flush writes one group, or a few
//   record          | header | key | value |                            is not written again: sets refer to values
//
// Two manifests are written in turn. Each is a whole state under one checksum, so a torn one is as if it had not been
// written. (HSE stored the fields of its header one by one: a crash between generation and checksum made the store
// unopenable, HSE issue 471.)
#pragma once

#include <pmlab/base/checksum.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/store_mark.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace pmlab::stores::detail::tiered {

inline constexpr std::size_t most_key_bytes = 1344;
inline constexpr std::size_t most_value_bytes = std::size_t{1} << 20;
inline constexpr std::size_t most_tables = 256;
inline constexpr std::size_t most_table_name = 40;
inline constexpr std::uint32_t no_segment = 0xffffffff;
// A segment of log_anchor: there is no log, the newest changes are in persistent memory.
inline constexpr std::uint32_t in_memory = 0xfffffffe;

// Where segments are: on the staging or on the capacity drive.
enum class media_class : std::uint8_t { staging = 0, capacity = 1 };
inline constexpr std::size_t classes = 2;
inline constexpr std::uint32_t capacity_bit = 0x80000000;
[[nodiscard]] constexpr std::size_t index_of(media_class c) noexcept { return static_cast<std::size_t>(c); }
[[nodiscard]] constexpr media_class class_of(std::uint32_t segment) noexcept {
  return (segment & capacity_bit) == 0 ? media_class::staging : media_class::capacity;
}

// The name of a segment in messages.
[[nodiscard]] inline std::string in_words(std::uint32_t segment) {
  return "segment " + std::to_string(segment & ~capacity_bit) + " of the " +
         (class_of(segment) == media_class::staging ? "staging" : "capacity") + " drive";
}

using identity = std::array<std::uint64_t, 2>;

enum class change_kind : std::uint8_t { put = 1, erase = 2 };

enum class drive_role : std::uint32_t { staging = 1, capacity = 2 };
// A store is made in three steps: the capacity drive is forming, the staging drive is ready, the capacity drive is
// ready.
enum class drive_state : std::uint32_t { forming = 1, ready = 2 };

struct drive_header {
  static constexpr std::array<char, 8> right_magic = blocks::tiered_mark.magic;
  static constexpr std::uint64_t current_version = 4;  // 1: no leaves; 2: no epochs; 3: other checksums
  static constexpr std::uint64_t oldest_version = 2;   // that is opened, and becomes the current one
  static constexpr std::uint64_t first_version_with_epochs = 3;

  std::array<char, 8> magic = right_magic;
  std::uint64_t version = current_version;
  identity store{};
  drive_role role = drive_role::staging;
  drive_state state = drive_state::forming;
  std::uint64_t block_bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t segment_bytes = 0;
  std::uint64_t manifest_bytes = 0;
  std::uint32_t place = 0;        // a placement
  std::uint32_t page_bytes = 0;   // bytes of a page of keys
  std::uint32_t has_staging = 0;  // 0: a store on one drive
  std::uint32_t unused = 0;
  std::uint64_t checksum = 0;  // checksum of all before
};
static_assert(sizeof(drive_header) == 96 && std::is_trivially_copyable_v<drive_header>);
static_assert(offsetof(drive_header, block_bytes) == blocks::tiered_mark.block_bytes_at);

// What a drive without manifests knows of the manifests: behind its header, in the same sector. See epoch.hpp.
struct drive_epoch {
  static constexpr std::size_t offset = 128;  // in block 0

  std::uint64_t session = 0;    // the word of a moment: each opening begins one
  std::uint64_t promised = 0;   // the manifest that was about to be written
  std::uint64_t confirmed = 0;  // a manifest that was durable
  std::uint64_t durable = 0;    // changes up to this sequence were, too
  std::uint64_t checksum = 0;   // checksum of all before
};
static_assert(sizeof(drive_epoch) == 40 && std::is_trivially_copyable_v<drive_epoch> &&
              sizeof(drive_header) <= drive_epoch::offset &&
              drive_epoch::offset + sizeof(drive_epoch) <= blocks::least_block_bytes);

struct group_header {
  std::uint64_t checksum = 0;  // checksum of all that follows, header and records
  std::uint64_t previous = 0;  // the checksum of the group before: a chain
  identity store{};
  std::uint64_t generation = 0;  // the durable manifest: each opening begins with one, so no two write the same group
  std::uint64_t first = 0;       // sequence of its first record; they are consecutive
  std::uint32_t records = 0;
  std::uint32_t bytes = 0;    // bytes of the records
  std::uint64_t durable = 0;  // changes up to this sequence were durable when it was written
};
static_assert(sizeof(group_header) == 64 && std::is_trivially_copyable_v<group_header>);

struct record_header {
  std::uint64_t sequence = 0;
  std::uint32_t value_bytes = 0;
  std::uint16_t key_bytes = 0;
  std::uint8_t table = 0;
  change_kind kind = change_kind::put;
};
static_assert(sizeof(record_header) == 16 && std::is_trivially_copyable_v<record_header>);

struct manifest_header {
  std::uint64_t checksum = 0;  // checksum of all that follows
  std::uint64_t version = 0;   // the greater valid one counts
  identity store{};
  std::uint64_t bytes = 0;  // bytes of the state
};
static_assert(sizeof(manifest_header) == 40);

// Where a record's value is in the log.
struct value_place {
  std::uint32_t segment = no_segment;
  std::uint32_t offset = 0;  // byte of the segment
};

// Where replay begins: the group there, or the first group of another segment, continues the chain.
struct log_anchor {
  std::uint32_t segment = no_segment;
  std::uint32_t offset = 0;
  std::uint64_t chain = 0;  // checksum of the group before
  std::uint64_t next = 1;   // the sequence of its first record
};

[[nodiscard]] constexpr std::uint64_t round_up(std::uint64_t bytes, std::uint64_t to) noexcept {
  return (bytes + to - 1) / to * to;
}

// How a drive is divided. `manifest_bytes`: 0 on a drive without manifests.
struct areas {
  std::uint32_t block_bytes = 0;
  std::uint32_t segment_bytes = 0;
  std::uint64_t manifest_bytes = 0;
  std::uint64_t blocks = 0;

  [[nodiscard]] std::uint64_t manifest_block(std::uint64_t version) const noexcept {
    return 1 + version % 2 * (manifest_bytes / block_bytes);
  }
  [[nodiscard]] std::uint64_t first_block_of(std::uint32_t number) const noexcept {
    return 1 + 2 * (manifest_bytes / block_bytes) + std::uint64_t{number} * (segment_bytes / block_bytes);
  }
  [[nodiscard]] std::uint32_t segments() const noexcept {
    if (blocks == 0) return 0;
    const std::uint64_t before = first_block_of(0);
    const std::uint64_t count = blocks <= before ? 0 : (blocks - before) / (segment_bytes / block_bytes);
    return count < capacity_bit ? static_cast<std::uint32_t>(count) : capacity_bit - 1;
  }
};

// All segments of a store. A segment's name is its number on its drive, with a bit that names the drive.
struct store_areas {
  std::uint32_t block_bytes = 0;  // bytes of a block of the drive with the larger ones
  std::uint32_t segment_bytes = 0;
  std::array<areas, classes> drives{};

  [[nodiscard]] std::uint64_t block_at(std::uint32_t segment, std::uint32_t offset) const noexcept {
    const areas& on = drives[index_of(class_of(segment))];
    return on.first_block_of(segment & ~capacity_bit) + offset / on.block_bytes;
  }
  [[nodiscard]] bool has(std::uint32_t segment) const noexcept {
    return (segment & ~capacity_bit) < drives[index_of(class_of(segment))].segments();
  }
};

}  // namespace pmlab::stores::detail::tiered
