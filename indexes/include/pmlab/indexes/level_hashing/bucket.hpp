// The bucket of Level hashing: seven entries, and one word with their valid bits and tags.
#pragma once

#include <pmlab/media/lines.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::level_hashing {

inline constexpr unsigned slots_per_bucket = 7;

// The token word of a bucket.
//
//   0       8                 56            64
//   | tag 0 | tag 1 |  ...  | 0 | valid bits |        tag i: 8 bits of the hash of entry i, if valid bit i is set
//
// One 8-byte store adds or removes an entry. A search compares all tags in a register, and reads only the entries whose
// tag matches: of others, one in 256.
class tokens {
 public:
  constexpr tokens() noexcept = default;
  constexpr explicit tokens(std::uint64_t word) noexcept : word_(word) {}

  [[nodiscard]] constexpr std::uint64_t word() const noexcept { return word_; }

  // Bit i: slot i holds an entry.
  [[nodiscard]] constexpr unsigned valid() const noexcept { return static_cast<unsigned>(word_ >> valid_at) & all; }
  // Not std::popcount, which is a function call in a build for every x86-64: a copy of the seven bits for each four of
  // them, in which every bit has 4 bits of the word for itself, and the sum of these.
  [[nodiscard]] constexpr unsigned entries() const noexcept {
    return (valid() * 0x00204081U & 0x01111111U) * 0x11111111U >> 28;
  }
  [[nodiscard]] constexpr bool full() const noexcept { return valid() == all; }
  // The first slot without an entry: those that share the line of the token word are first.
  [[nodiscard]] constexpr unsigned free_slot() const noexcept {
    return static_cast<unsigned>(std::countr_one(valid()));
  }

  // Bit i: slot i holds an entry with this tag.
  [[nodiscard]] constexpr unsigned matching(std::uint8_t tag) const noexcept {
    const std::uint64_t differences = word_ ^ tag * (low_bits & tag_bytes);
    // The upper bit of a byte of `sums` is set unless the lower seven are 0; nothing carries into the next byte.
    const std::uint64_t sums = (differences & ~upper_bits) + ~upper_bits;
    const std::uint64_t equal = ~(sums | differences) & upper_bits & tag_bytes;
    return static_cast<unsigned>(((equal >> 7) * gather) >> valid_at) & valid();
  }

  [[nodiscard]] constexpr std::uint8_t tag(unsigned slot) const noexcept {
    return static_cast<std::uint8_t>(word_ >> (8 * slot));
  }
  [[nodiscard]] constexpr tokens with(unsigned slot, std::uint8_t tag) const noexcept {
    const std::uint64_t others = word_ & ~(std::uint64_t{0xff} << (8 * slot));
    return tokens(others | std::uint64_t{tag} << (8 * slot) | std::uint64_t{1} << (valid_at + slot));
  }
  [[nodiscard]] constexpr tokens without(unsigned slot) const noexcept {
    return tokens(word_ & ~(std::uint64_t{1} << (valid_at + slot)));
  }
  // The bit that no bucket has set.
  [[nodiscard]] constexpr bool plausible() const noexcept { return word_ >> 63 == 0; }

 private:
  static constexpr unsigned valid_at = 8 * slots_per_bucket;
  static constexpr unsigned all = (1U << slots_per_bucket) - 1;
  static constexpr std::uint64_t tag_bytes = (std::uint64_t{1} << valid_at) - 1;
  static constexpr std::uint64_t low_bits = 0x0101010101010101;
  static constexpr std::uint64_t upper_bits = 0x8080808080808080;
  // Brings bit 8 i to bit 56 + i, for i = 0 to 6: the sum of 2^(56 - 7 i). No other product reaches those bits.
  static constexpr std::uint64_t gather = 0x0102040810204000;

  std::uint64_t word_ = 0;
};

static_assert(tokens().with(0, 7).with(3, 7).with(4, 0).with(6, 7).matching(7) == 0b1001001);
static_assert(tokens().with(1, 0).with(5, 255).matching(0) == 0b10 && tokens().matching(0) == 0);
static_assert(tokens().with(1, 0x80).with(2, 0).with(5, 255).matching(0x80) == 0b10);
static_assert(tokens().entries() == 0 && tokens(std::uint64_t{0x7f} << 56).entries() == slots_per_bucket &&
              tokens(std::uint64_t{0b0101100} << 56).entries() == 3 &&
              tokens(std::uint64_t{0b1010011} << 56).entries() == 4);
static_assert(tokens().with(5, 255).without(5).matching(255) == 0 && tokens().with(0, 1).free_slot() == 1);

struct slot {
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint64_t> value;
};

// Two lines, half of a device line; no slot straddles them (L5). Slots 0 to 2 share a line with the token word: a store
// of the token word that comes after theirs is durable after theirs.
//
//   0        8        16                      64                              128
//   | tokens | unused | slot 0 |    | slot 2 | slot 3 |       ...   | slot 6 |
struct alignas(2 * media::cache_line_bytes) bucket {
  std::atomic<std::uint64_t> word;
  std::atomic<std::uint64_t> unused;
  std::array<slot, slots_per_bucket> slots;

  [[nodiscard]] tokens load() const noexcept { return tokens(word.load(std::memory_order_acquire)); }
  // False: damaged.
  [[nodiscard]] bool plausible() const noexcept {
    return load().plausible() && unused.load(std::memory_order_acquire) == 0;
  }
};

inline constexpr unsigned slots_beside_tokens = 3;

static_assert(sizeof(bucket) == 2 * media::cache_line_bytes);
static_assert(offsetof(bucket, slots) + slots_beside_tokens * sizeof(slot) == media::cache_line_bytes);

}  // namespace pmlab::indexes::detail::level_hashing
