// What a chunk store keeps on persistent memory, and the words of it that commit.
//
//   superblock --> slab --> slab --> ...      slab: one line, then records
//   record:  line 0      | key | head | map | written (4 words) | 0 |
//            lines 1...  | entry | entry | ...                        the ring
//   map:     one word for each block of the chunk (of 4 bytes)
//
// A block of a chunk is found in this order:
//   the newest ring entry that covers it has its place; else
//   its word in the map, if there is a map and the word is not 0; else
//   its bit in `written`: it is where the chunk's base extent has it; else
//   it was never written, and reads as zeros.
//
// No tail of the ring is stored. The entry of position p is valid if its lap is that of p; positions count from `head`.
// So one 8-byte store commits a write. A group is several entries, of which all but the last have `more`: a reader that
// meets an invalid entry drops the entries of the group before it.
#pragma once

#include <pmlab/base/hash.hpp>
#include <pmlab/blocks/store_mark.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/media/pointer.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace pmlab::stores {

// How a chunk gets room in its ring.
enum class merge_policy : std::uint8_t {
  remap,  // the places of the blocks go into a map in memory: no data is copied
  copy    // as in the paper: the data goes back to the chunk's base extent, which is never freed while the chunk lives
};

}  // namespace pmlab::stores

namespace pmlab::stores::detail::chunk_store {

using word = std::atomic<std::uint64_t>;

inline constexpr std::uint32_t no_block = 0xffffffff;  // in `base`: the chunk has no base extent
inline constexpr std::uint32_t hole = 0xfffffffe;      // in an entry or the map: discarded, reads as zeros
inline constexpr std::uint32_t nowhere = 0xfffffffd;   // no drive has this block
inline constexpr std::uint32_t most_blocks_of_chunk = 256;
inline constexpr std::uint32_t laps = 255;  // 1 to 255; 0: the slot was never used

// The name of a chunk: volume 1 to 2^24-1, chunk number below 2^40. 0 is no name.
[[nodiscard]] constexpr std::uint64_t name_chunk(std::uint32_t volume, std::uint64_t chunk) noexcept {
  return std::uint64_t{volume} << 40 | chunk;
}
[[nodiscard]] constexpr std::uint32_t volume_of(std::uint64_t key) noexcept {
  return static_cast<std::uint32_t>(key >> 40);
}

// The block of the drive that is so many behind another one. A damaged place leads beyond the drive: never round the
// end of the number to its first blocks, and to no word with a meaning.
[[nodiscard]] constexpr std::uint32_t block_behind(std::uint32_t first, std::uint32_t count) noexcept {
  return first < nowhere - count ? first + count : nowhere;
}

struct head_word {
  std::uint32_t base = no_block;  // first block of the base extent on the device
  std::uint16_t position = 0;     // position of the oldest ring entry, modulo ring * laps
  std::uint16_t unused = 0;
};
static_assert(sizeof(head_word) == 8);

struct entry_word {
  std::uint32_t target = 0;  // first block on the device, or `hole`
  std::uint8_t first = 0;    // block of the chunk
  std::uint8_t blocks_less_1 = 0;
  std::uint8_t lap = 0;
  std::uint8_t more = 0;  // 1: the group goes on with the next entry

  [[nodiscard]] std::uint32_t count() const noexcept { return blocks_less_1 + 1U; }
  [[nodiscard]] bool covers(std::uint32_t block) const noexcept { return block >= first && block - first < count(); }
};
static_assert(sizeof(entry_word) == 8);

template <class Parts>
[[nodiscard]] Parts parts_of(std::uint64_t w) noexcept {
  return std::bit_cast<Parts>(w);
}
template <class Parts>
[[nodiscard]] std::uint64_t word_of(const Parts& parts) noexcept {
  return std::bit_cast<std::uint64_t>(parts);
}

struct alignas(media::cache_line_bytes) record {
  word key{0};  // 0: free. Stored last in its line, so a key implies the words before it
  word head{0};
  word map{0};  // pointer to a block_map; 0: none
  std::array<word, 4> written{};
  word unused{0};

  // The ring follows.
  [[nodiscard]] word* ring() noexcept { return reinterpret_cast<word*>(this + 1); }
  [[nodiscard]] const word* ring() const noexcept { return reinterpret_cast<const word*>(this + 1); }
};
static_assert(sizeof(record) == media::cache_line_bytes);

using map_entry = std::atomic<std::uint32_t>;  // 0: not in the map; else the block on the device, or `hole`

[[nodiscard]] constexpr std::size_t record_bytes(std::uint32_t ring) noexcept {
  return sizeof(record) + media::whole_lines(ring * sizeof(word));
}
[[nodiscard]] constexpr std::size_t map_bytes(std::uint32_t chunk_blocks) noexcept {
  return media::whole_lines(chunk_blocks * sizeof(map_entry));
}

struct alignas(media::cache_line_bytes) slab {
  word next{0};   // the slab that was made before
  word count{0};  // records that follow

  [[nodiscard]] record* at(std::uint64_t number, std::uint32_t ring) noexcept {
    return reinterpret_cast<record*>(reinterpret_cast<std::byte*>(this + 1) + number * record_bytes(ring));
  }
};

inline constexpr std::size_t name_bytes = 40;
inline constexpr std::uint32_t most_volumes = 256;

enum class volume_state : std::uint64_t { free = 0, there = 1, going = 2 };  // going: its chunks are being removed

struct alignas(media::cache_line_bytes) volume_slot {
  word state{0};  // a volume_state, and in memory a check of the slot; stored last when a volume is made
  word bytes{0};
  std::array<word, name_bytes / sizeof(word)> name{};  // characters, 0-padded
  word session{0};  // in slots 0 and 1 of a superblock: the durable and the begun one (session.hpp); in slot 2: its
                    // checksum; else unused
};
static_assert(sizeof(volume_slot) == media::cache_line_bytes);

// The state of a slot in memory, with a check of the slot's other words: a flipped bit is noticed, instead of a volume
// that is not there. Stores of before have none.
class checked_state {
 public:
  explicit checked_state(std::uint64_t w) noexcept : word_(w) {}
  [[nodiscard]] static checked_state of(volume_state s, const volume_slot& v) noexcept {
    return checked_state(static_cast<std::uint64_t>(s) | check_of(s, v) << state_bits);
  }
  [[nodiscard]] std::uint64_t word() const noexcept { return word_; }
  [[nodiscard]] volume_state state() const noexcept {
    return static_cast<volume_state>(word_ & ((std::uint64_t{1} << state_bits) - 1));
  }
  [[nodiscard]] bool has_check() const noexcept { return word_ >> state_bits != 0; }
  // `needs_check`: each slot that is not free has one.
  [[nodiscard]] bool is_whole(const volume_slot& v, bool needs_check) const noexcept {
    if (state() > volume_state::going) return false;
    if (!has_check()) return state() == volume_state::free || !needs_check;
    return word_ == of(state(), v).word();
  }

 private:
  static constexpr unsigned state_bits = 8;
  // Never 0.
  [[nodiscard]] static std::uint64_t check_of(volume_state s, const volume_slot& v) noexcept {
    std::uint64_t sum = mix_bits(static_cast<std::uint64_t>(s) + 1);
    sum = mix_bits(sum ^ v.bytes.load(std::memory_order_acquire));
    for (const auto& w : v.name) sum = mix_bits(sum ^ w.load(std::memory_order_acquire));
    return sum >> state_bits | 1;
  }
  std::uint64_t word_;
};

inline constexpr std::uint64_t forming = 1;  // the drive's header is being written
inline constexpr std::uint64_t ready = 2;

struct ring_word {
  std::uint32_t entries = 0;  // entries of a ring
  std::uint32_t merge = 0;    // a merge_policy. 0 in stores of before it; one of before it refuses others

  // In `merge` of a store whose volumes have checks: releases of before these would take its volumes for absent, and
  // refuse this policy.
  static constexpr std::uint32_t has_checks = std::uint32_t{1} << 31;
};
static_assert(sizeof(ring_word) == 8);

struct alignas(media::cache_line_bytes) superblock {
  word state{0};
  std::array<word, 2> identity{};  // identity of the store; the drive's header has the same
  word block_bytes{0};
  word chunk_blocks{0};
  word ring{0};    // a ring_word
  word blocks{0};  // blocks of the drive
  word slabs{0};   // pointer to the newest slab
  std::array<volume_slot, most_volumes> volumes{};
};

// The header in block 0 of the drive.
struct drive_header {
  static constexpr std::array<char, 8> right_magic = blocks::chunk_store_mark.magic;
  static constexpr std::uint64_t current_version = 1;     // its records are in a pool
  static constexpr std::uint64_t version_with_pairs = 3;  // on a key-value device; 2: on the drive itself

  std::array<char, 8> magic = right_magic;
  std::uint64_t version = current_version;
  std::array<std::uint64_t, 2> identity{};
  std::uint64_t block_bytes = 0;
  std::uint64_t chunk_blocks = 0;
  std::uint64_t blocks = 0;
  std::uint64_t checksum = 0;  // checksum of all before
};
static_assert(sizeof(drive_header) == 64 && std::is_trivially_copyable_v<drive_header>);
static_assert(offsetof(drive_header, block_bytes) == blocks::chunk_store_mark.block_bytes_at);

}  // namespace pmlab::stores::detail::chunk_store
