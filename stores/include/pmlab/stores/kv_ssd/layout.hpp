// What a key-value device keeps in its memory and on its flash, and the words that commit.
//
//   memory:  state --> ring of lines (the write buffer);  index, directory of buckets (indexes of pmlab)
//   flash:   header | superblock | superblock | ...        a superblock is filled, collected and reused as a whole
//   record:  | head | key | value | padding |              whole lines in the ring, whole units on flash
//
// The index is the truth: a record is live if a word of the index leads to it. The flash has no other map.
#pragma once

#include <pmlab/base/checksum.hpp>
#include <pmlab/blocks/store_mark.hpp>
#include <pmlab/media/lines.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace pmlab::stores::detail::kv_ssd {

using word = std::atomic<std::uint64_t>;

inline constexpr std::size_t most_key_bytes = 255;
inline constexpr std::size_t most_value_bytes = std::size_t{2} << 20;
inline constexpr std::size_t least_unit_bytes = 64;
inline constexpr std::size_t most_unit_bytes = 4096;
inline constexpr std::uint8_t bucket_space = 255;  // the key space of bucket pages

// Before each record's key. Checksums are seeded with the device's identity: bytes of a user are never taken for a
// head.
struct record_head {
  std::uint64_t head_sum = 0;   // checksum of the rest of the head, and of the key
  std::uint64_t value_sum = 0;  // checksum of the value
  std::uint64_t sequence = 0;   // sequence of this version; grows over the life of the device
  std::uint64_t birth = 0;      // sequence of the first version since the key was absent
  std::uint32_t value_bytes = 0;
  std::uint32_t page = 0;  // page of the key's bucket, in which the key is listed
  std::uint8_t key_bytes = 0;
  std::uint8_t space = 0;
  std::uint8_t slot = 0;   // slot of the key, in its chain of the index
  std::uint8_t notes = 0;  // record_note
  std::uint32_t lap = 0;   // lap of the ring, in which the record was written
};
static_assert(sizeof(record_head) == 48 && std::is_trivially_copyable_v<record_head>);

// In `notes`. Records of releases without local tables have none: their slot and lap are not set.
enum record_note : std::uint8_t {
  has_lap = 1,         // slot and lap are set
  is_deferred = 2,     // an overwrite that the index does not lead to yet: the record itself is the commit
  is_on_new_page = 4,  // its page lists the key since the record before
};

[[nodiscard]] constexpr std::size_t record_bytes(std::size_t key_bytes, std::size_t value_bytes) noexcept {
  return sizeof(record_head) + key_bytes + value_bytes;
}
[[nodiscard]] constexpr std::size_t bytes_of(const record_head& h) noexcept {
  return record_bytes(h.key_bytes, h.value_bytes);
}
[[nodiscard]] constexpr std::size_t pieces_for(std::size_t bytes, std::size_t piece) noexcept {
  return (bytes + piece - 1) / piece;
}
[[nodiscard]] constexpr std::uint32_t lines_for(std::size_t bytes) noexcept {
  return static_cast<std::uint32_t>(pieces_for(bytes, media::cache_line_bytes));
}

// The bytes of a record, of which the value may not be there.
class record_view {
 public:
  // `bytes` has at least a head.
  explicit record_view(std::span<const std::byte> bytes) noexcept : bytes_(bytes) {
    std::memcpy(static_cast<void*>(&head_), bytes.data(), sizeof head_);
  }
  [[nodiscard]] const record_head& head() const noexcept { return head_; }
  [[nodiscard]] std::string_view key() const noexcept {
    return {reinterpret_cast<const char*>(bytes_.data()) + sizeof head_, head_.key_bytes};
  }
  [[nodiscard]] std::span<const std::byte> value() const noexcept {
    return bytes_.subspan(sizeof head_ + head_.key_bytes, head_.value_bytes);
  }
  // The head and the key are undamaged.
  [[nodiscard]] bool has_whole_head(std::uint64_t seed) const noexcept {
    return may_have_key() && head_.value_bytes <= most_value_bytes &&
           is_checksum(head_.head_sum, bytes_.data() + summed_from, summed_bytes(head_.key_bytes), seed);
  }
  // The key is there, as far as its length can be trusted.
  [[nodiscard]] bool may_have_key() const noexcept {
    return head_.key_bytes != 0 && sizeof head_ + head_.key_bytes <= bytes_.size();
  }
  // REQUIRES: has_whole_head, and all bytes are there.
  [[nodiscard]] bool has_whole_value(std::uint64_t seed) const noexcept {
    return is_checksum(head_.value_sum, value().data(), value().size(), seed);
  }
  // The checksum of the head and the key at `record`.
  [[nodiscard]] static std::uint64_t head_sum(const std::byte* record, std::size_t key_bytes,
                                              std::uint64_t seed) noexcept {
    return checksum(record + summed_from, summed_bytes(key_bytes), seed);
  }

 private:
  static constexpr std::size_t summed_from = sizeof record_head::head_sum;
  [[nodiscard]] static constexpr std::size_t summed_bytes(std::size_t key_bytes) noexcept {
    return sizeof(record_head) - summed_from + key_bytes;
  }

  std::span<const std::byte> bytes_;
  record_head head_;
};

// A word of the index: where the record of a key is.
//
//   63 ring | 62 gone, or named | 61 follower | 56..60 check | 40..55 units | 0..39 place
//   place of a checked word: 39 one | 38 parity | 36..37 width | the rest of the check | address of `width` bits
//
// A single flipped bit of a checked word is noticed, by the parity of all bits; bit 39, by a place that cannot be (on
// devices of up to 2^24 units). The check is that of the record's sequence: a word that leads to another version of its
// record is noticed but for one of 31 * 4095 (an address of up to 24 bits), 31 * 255 (28 bits), 31 * 15 (32 bits) or 31
// (36 bits). Words of releases before are not checked: those of flash have bits 56..60, those of the ring have none.
// They are checked when their records are moved. A word that is named is checked, and its parity is that of its name,
// too; only the table has such words (chains.hpp).
class place_word {
 public:
  place_word() = default;
  explicit place_word(std::uint64_t w) noexcept : word_(w) {}
  // `sequence`: of the record that is there. `checked`: releases before refuse the device.
  [[nodiscard]] static place_word on_flash(std::uint64_t unit, std::uint64_t units, std::uint64_t sequence,
                                           bool checked) noexcept {
    return lead_to(unit, units, sequence, checked);
  }
  // The same.
  [[nodiscard]] static place_word in_ring(std::uint64_t line, std::uint64_t units, std::uint64_t sequence,
                                          bool checked) noexcept {
    return lead_to(line, units, sequence, checked).with(ring_bit);
  }

  // The same of any record there.
  [[nodiscard]] static place_word in_ring(std::uint64_t line, std::uint64_t units) noexcept {
    return place_word(ring_bit | units << place_bits | line);
  }

  [[nodiscard]] std::uint64_t word() const noexcept { return word_; }
  // A line of the ring, or a unit of flash.
  [[nodiscard]] std::uint64_t address() const noexcept {
    return word_ & mask_of(is_checked() ? address_bits_of(word_) : place_bits);
  }
  [[nodiscard]] std::uint32_t units() const noexcept { return word_ >> place_bits & ((1U << unit_bits) - 1); }
  [[nodiscard]] bool is_in_ring() const noexcept { return (word_ & ring_bit) != 0; }
  // No record: a key was deleted whose slot has followers.
  [[nodiscard]] bool is_gone() const noexcept { return word_ == gone_with_follower().word_; }
  // The key of its slot has a record, and nothing is known of its place: opening has found the word or the record
  // damaged. The key counts as damaged.
  [[nodiscard]] bool is_lost() const noexcept { return !is_gone() && units() == 0; }
  // False: a bit of it has flipped. It leads nowhere, as a lost one.
  [[nodiscard]] bool is_whole() const noexcept {
    if (is_gone()) return true;
    return (word_ & gone_bit) == 0 && (!is_checked() || std::popcount(word_) % 2 == 0);
  }
  // Another key with the same hash may be in the next slot.
  [[nodiscard]] bool has_follower() const noexcept { return (word_ & follower_bit) != 0 || !is_whole(); }

  [[nodiscard]] place_word with_follower() const noexcept { return with(follower_bit); }
  [[nodiscard]] static place_word lost(bool checked) noexcept {
    return checked ? place_word(checked_bit).with(ring_bit) : place_word(ring_bit);
  }
  [[nodiscard]] static place_word gone_with_follower() noexcept { return place_word(gone_bit | follower_bit); }
  // As the table has it for a name with this hash: the parity is that of both, so that a flipped bit of the name is
  // noticed, too.
  [[nodiscard]] std::uint64_t named(std::uint64_t hash) const noexcept {
    return is_checked() ? (word_ | named_bit) ^ parity_of(hash) : word_;
  }
  // The same without the name. If a bit of that has flipped, it is not whole. Words of releases before have no name.
  [[nodiscard]] static place_word of_named(std::uint64_t w, std::uint64_t hash) noexcept {
    constexpr std::uint64_t both = named_bit | checked_bit;
    return place_word((w & both) == both ? (w & ~named_bit) ^ parity_of(hash) : w);
  }
  // Lead to the same record. One that is damaged leads where no other does.
  [[nodiscard]] bool is_same_place(place_word other) const noexcept {
    if (word_ == other.word_) return true;
    if (!is_whole() || !other.is_whole()) return false;
    if (is_checked() && other.is_checked()) return ((word_ ^ other.word_) & ~(follower_bit | parity_bit)) == 0;
    return ((word_ ^ other.word_) & (ring_bit | gone_bit | mask_of(unit_bits) << place_bits)) == 0 &&
           address() == other.address() && (check() == 0 || other.check() == 0 || check() == other.check());
  }
  // False: a record with this sequence is not the one that the word leads to, but another in its place: an older one
  // where a write was lost, or another version.
  [[nodiscard]] bool fits(std::uint64_t sequence) const noexcept {
    if (check() == 0) return true;
    if (check() != check_of(sequence)) return false;
    return !is_checked() || rest_of(word_) == rest_of(address_bits_of(word_), sequence);
  }

 private:
  static constexpr unsigned place_bits = 40;
  static constexpr unsigned unit_bits = 16;
  static constexpr unsigned check_at = place_bits + unit_bits;
  static constexpr std::uint64_t check_mask = std::uint64_t{31} << check_at;
  static constexpr std::uint64_t checked_bit = std::uint64_t{1} << 39;
  static constexpr std::uint64_t parity_bit = std::uint64_t{1} << 38;
  static constexpr unsigned width_at = 36;
  static constexpr unsigned least_address_bits = 24;
  static constexpr unsigned width_step = 4;
  static constexpr std::uint64_t ring_bit = std::uint64_t{1} << 63;
  static constexpr std::uint64_t gone_bit = std::uint64_t{1} << 62;
  static constexpr std::uint64_t follower_bit = std::uint64_t{1} << 61;

  static constexpr std::uint64_t named_bit = gone_bit;

  [[nodiscard]] static constexpr std::uint64_t mask_of(unsigned bits) noexcept {
    return (std::uint64_t{1} << bits) - 1;
  }
  [[nodiscard]] static std::uint64_t parity_of(std::uint64_t hash) noexcept {
    return std::popcount(hash) % 2 == 0 ? 0 : parity_bit;
  }
  // From 1 to 31; 0: the word has none.
  [[nodiscard]] static std::uint64_t check_of(std::uint64_t sequence) noexcept { return 1 + sequence % 31; }
  [[nodiscard]] std::uint64_t check() const noexcept { return (word_ & check_mask) >> check_at; }
  [[nodiscard]] bool is_checked() const noexcept { return (word_ & checked_bit) != 0; }

  // REQUIRE that the word is checked: the bits of its address, and the check that lies between these and the width. The
  // two parts of the check have no common divisor.
  [[nodiscard]] static unsigned address_bits_of(std::uint64_t w) noexcept {
    return least_address_bits + width_step * static_cast<unsigned>(w >> width_at & 3);
  }
  [[nodiscard]] static std::uint64_t rest_of(std::uint64_t w) noexcept {
    return (w & mask_of(width_at)) >> address_bits_of(w);
  }
  [[nodiscard]] static std::uint64_t rest_of(unsigned address_bits, std::uint64_t sequence) noexcept {
    return address_bits == width_at ? 0 : 1 + sequence % mask_of(width_at - address_bits);
  }

  [[nodiscard]] static place_word lead_to(std::uint64_t address, std::uint64_t units, std::uint64_t sequence,
                                          bool checked) noexcept {
    const place_word plain(check_of(sequence) << check_at | units << place_bits | address);
    if (!checked || address > mask_of(width_at)) return plain;
    std::uint64_t width = 0;
    while (address > mask_of(address_bits_of(width << width_at))) ++width;
    const unsigned address_bits = address_bits_of(width << width_at);
    return place_word(plain.word_ | width << width_at | rest_of(address_bits, sequence) << address_bits)
        .with(checked_bit);
  }
  // With this bit, and the parity of all, if it is checked.
  [[nodiscard]] place_word with(std::uint64_t bit) const noexcept {
    const std::uint64_t w = word_ | bit;
    if ((w & checked_bit) == 0 || std::popcount(w) % 2 == 0) return place_word(w);
    return place_word(w ^ parity_bit);
  }

  std::uint64_t word_ = 0;
};

// A word of the directory of buckets: the numbers of the oldest and the newest page that a bucket may have.
//
//   63 one | 56..62 check | 32..55 oldest | 0..31 newest
//
// The check is that of the word and of its bucket: a single flipped bit of both is noticed. Words of releases before,
// and those of buckets whose oldest page has a number of 2^24 or more, have none: 32..62 oldest.
class page_range {
 public:
  explicit page_range(std::uint64_t w) noexcept : word_(w) {}
  page_range(std::uint64_t bucket, std::uint32_t oldest, std::uint32_t newest) noexcept
      : word_(std::uint64_t{oldest} << newest_bits | newest) {
    if (word_ <= value_mask) word_ |= checked_bit | check_of(bucket, word_) << value_bits;
  }

  [[nodiscard]] std::uint64_t word() const noexcept { return word_; }
  [[nodiscard]] std::uint32_t newest() const noexcept { return static_cast<std::uint32_t>(word_); }
  [[nodiscard]] std::uint32_t oldest() const noexcept {
    return static_cast<std::uint32_t>((is_checked() ? word_ & value_mask : word_) >> newest_bits);
  }
  [[nodiscard]] bool is_whole(std::uint64_t bucket) const noexcept {
    if (oldest() > newest()) return false;
    return !is_checked() || (word_ & ~checked_bit) >> value_bits == check_of(bucket, word_ & value_mask);
  }

 private:
  static constexpr unsigned newest_bits = 32;
  static constexpr unsigned value_bits = 56;
  static constexpr std::uint64_t value_mask = (std::uint64_t{1} << value_bits) - 1;
  static constexpr std::uint64_t checked_bit = std::uint64_t{1} << 63;
  // From 1 to 127. No power of two is a multiple of 127, so each bit changes it.
  [[nodiscard]] static std::uint64_t check_of(std::uint64_t bucket, std::uint64_t value) noexcept {
    return 1 + (bucket % 127 + value) % 127;
  }
  [[nodiscard]] bool is_checked() const noexcept { return (word_ & checked_bit) != 0; }

  std::uint64_t word_;
};

inline constexpr std::uint64_t forming = 1;        // the header on flash is being written
inline constexpr std::uint64_t ready = 2;          // in a release without moments the word `begun` may have any bits
inline constexpr std::uint64_t being_rebuilt = 3;  // from the flash: the index is not complete
inline constexpr std::uint64_t guarded = 4;  // ready, and the moment of the flash is compared with that of the memory

// In `notes` of the root object. No single bit that flips hides the keys in outlying slots.
enum device_note : std::uint64_t {
  has_short_keys = 1,                             // NVMe's
  has_unlisted_records = 2,                       // damaged ones without a name may be on no page: it was repaired
  has_outlying_slots = std::uint64_t{0xff} << 8,  // the index may have keys in outlying slots (chains.hpp)
  index_check = std::uint64_t{0xffff} << 16,      // a check of the index's directory while the device is closed; or 0
  has_check = std::uint64_t{1} << 32,             // the bits above are check_of_shape; not in releases of before
  all_notes = has_short_keys | has_unlisted_records | has_outlying_slots | index_check,
};

// Lines from the device's first one, with a check of their number: a flipped bit is noticed, instead of overwrites that
// replay misses.
class checked_tail {
 public:
  explicit checked_tail(std::uint64_t w) noexcept : word_(w) {}
  // REQUIRES: lines < 2^56.
  [[nodiscard]] static checked_tail of(std::uint64_t lines) noexcept {
    return checked_tail(lines | check_of(lines) << lines_bits);
  }
  [[nodiscard]] std::uint64_t word() const noexcept { return word_; }
  [[nodiscard]] std::uint64_t lines() const noexcept { return word_ & ((std::uint64_t{1} << lines_bits) - 1); }
  // Words of earlier releases have no check.
  [[nodiscard]] bool is_whole() const noexcept {
    const std::uint64_t check = word_ >> lines_bits;
    return check == 0 || check == check_of(lines());
  }

 private:
  static constexpr unsigned lines_bits = 56;
  // From 1 to 255. No power of two is a multiple of 255, so each bit of the lines changes it.
  [[nodiscard]] static std::uint64_t check_of(std::uint64_t lines) noexcept { return 1 + lines % 255; }
  std::uint64_t word_;
};

// The root object.
struct alignas(media::cache_line_bytes) state {
  word step{0};                    // forming, guarded; see there
  std::array<word, 2> identity{};  // identity of the device; the header on flash has the same
  word durable{0};                 // the moment that flash is known to have; its number: the upper bits of sequences
  word ring{0};                    // pointer to its first line
  word ring_lines{0};
  word block_bytes{0};
  word blocks{0};
  word unit_bytes{0};
  word superblock_bytes{0};
  word spare_superblocks{0};  // superblocks of flash beyond the capacity
  word largest_value{0};
  word bucket_bytes{0};
  word notes{0};      // device_note
  word ring_tail{0};  // a checked_tail; lines before it hold no record that replay may use
  word begun{0};      // the moment of the last opening that was begun; if the device is guarded
};
static_assert(sizeof(state) == 128);  // as in pools of earlier releases

// A check of the words that stay as the device was made with them, and the bit that says that there is one. A write
// buffer at another place, or of another length, would overwrite the index; values larger than the mover has room for
// would be written behind it.
[[nodiscard]] inline std::uint64_t check_of_shape(const state& s) noexcept {
  const auto value = [](const word& w) { return w.load(std::memory_order_acquire); };
  const std::array<std::uint64_t, 10> words{value(s.ring),
                                            value(s.ring_lines),
                                            value(s.block_bytes),
                                            value(s.blocks),
                                            value(s.unit_bytes),
                                            value(s.superblock_bytes),
                                            value(s.spare_superblocks),
                                            value(s.largest_value),
                                            value(s.bucket_bytes),
                                            value(s.notes) & has_short_keys};
  const std::uint64_t sum = pmlab::checksum(words.data(), sizeof words, value(s.identity[0])) >> 33;
  return std::max<std::uint64_t>(sum, 1) << 33 | has_check;
}

// In the first block of the flash. Version 1 has no moment behind it. Since version 3 words of the index are checked,
// since version 4 with their names.
struct flash_header {
  static constexpr std::array<char, 8> right_magic = blocks::kv_ssd_mark.magic;
  static constexpr std::uint64_t first_version = 1;
  static constexpr std::uint64_t first_version_with_checked_words = 3;
  static constexpr std::uint64_t first_version_with_checked_names = 4;
  static constexpr std::uint64_t current_version = 4;

  std::array<char, 8> magic = right_magic;
  std::uint64_t version = current_version;
  std::array<std::uint64_t, 2> identity{};
  std::uint64_t block_bytes = 0;
  std::uint64_t blocks = 0;
  std::uint64_t unit_bytes = 0;
  std::uint64_t superblock_bytes = 0;
  std::uint64_t checksum = 0;  // checksum of all before
};
static_assert(sizeof(flash_header) == 72 && std::is_trivially_copyable_v<flash_header>);
static_assert(offsetof(flash_header, block_bytes) == blocks::kv_ssd_mark.block_bytes_at);

// Behind the header, and changed by each opening: both are in the first 512 bytes, which a crash keeps whole.
struct flash_moment {
  static constexpr std::size_t offset = sizeof(flash_header);

  std::uint64_t word = 0;      // word of a moment
  std::uint64_t checksum = 0;  // checksum of the word and the device's identity
};
static_assert(flash_moment::offset + sizeof(flash_moment) <= 512 && std::is_trivially_copyable_v<flash_moment>);

}  // namespace pmlab::stores::detail::kv_ssd
