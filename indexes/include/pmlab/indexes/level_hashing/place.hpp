// Where Level hashing keeps a key: in which shard, and there in which four buckets.
#pragma once

#include <pmlab/base/hash.hpp>
#include <pmlab/indexes/detail/bijective_hash.hpp>

#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::level_hashing {

// A hash as a position in the staggered row of shards, a fraction of 2^32.
//
// Shards of equal shares would all grow at once: at 20 bytes per key before, 40 after. Shares that rise by a factor of
// 2 from the first to the last shard let one grow after the other; and if shares of s are as frequent as 1 / s^2, the
// bytes per key of all shards together do not depend on the number of keys. A hash of u at 2 - 2^(1-u) does that; here
// it is a cubic with the right values and slopes at both ends.
[[nodiscard]] constexpr std::uint64_t staggered(std::uint64_t hash) noexcept {
  constexpr std::uint64_t one = std::uint64_t{1} << 32;
  constexpr auto first_slope = static_cast<std::uint64_t>(0.3862943611 * static_cast<double>(one));  // 2 ln 2 - 1
  constexpr auto bend = static_cast<std::uint64_t>(0.0794415417 * static_cast<double>(one));         // 3 ln 2 - 2
  const std::uint64_t u = hash >> 32;
  const std::uint64_t bow = (u * (one - u)) >> 32;
  return u + ((bow * (first_slope - ((bend * u) >> 32))) >> 32);
}

// The number of the shard of a hash, of 2^log2_shards.
[[nodiscard]] constexpr std::size_t shard_of(std::uint64_t hash, unsigned log2_shards) noexcept {
  return staggered(hash) >> (32 - log2_shards);
}

static_assert(staggered(0) == 0 && staggered(~std::uint64_t{0}) == 0xffffffff);

// The four candidate buckets of a key: two in the top level, and in the bottom level the two that have half their
// numbers. A bucket's number is a prefix of one of two fields of the hash, so that a top level, when it becomes the
// bottom level below one of twice its size, holds its entries where they belong already.
//
// The fields differ in their first bit: the two buckets of a level are never the same one (in a level of one bucket:
// always).
class candidates {
 public:
  explicit constexpr candidates(std::uint64_t hash) noexcept
      : fields_{hash & field_mask, ((hash * second_hash) >> 33) | (~hash & first_bit)},
        tag_(static_cast<std::uint8_t>(hash)) {}

  // The number of candidate `which` (0, 1) in a level of 2^log2 buckets.
  [[nodiscard]] constexpr std::uint64_t number(unsigned which, unsigned log2) const noexcept {
    return fields_[which] >> (field_bits - log2);
  }
  // True if `bucket` is a candidate in a level of 2^log2 buckets.
  [[nodiscard]] constexpr bool include(std::uint64_t bucket, unsigned log2) const noexcept {
    return number(0, log2) == bucket || number(1, log2) == bucket;
  }
  // Bits of the hash that no bucket's number has.
  [[nodiscard]] constexpr std::uint8_t tag() const noexcept { return tag_; }

  static constexpr unsigned greatest_log2 = 24;

 private:
  static constexpr unsigned field_bits = 32;
  static constexpr std::uint64_t field_mask = 0xffffffff;
  static constexpr std::uint64_t first_bit = 0x80000000;
  static constexpr std::uint64_t second_hash = golden_ratio;

  std::uint64_t fields_[2];
  std::uint8_t tag_;
};

static_assert(candidates(0x1234567890abcdef).number(0, 1) != candidates(0x1234567890abcdef).number(1, 1));
static_assert(candidates(0x1234567890abcdef).number(0, 0) == 0 && candidates(0x1234567890abcdef).number(1, 0) == 0);
static_assert(candidates(0x1234567890abcdef).number(1, 7) >> 1 == candidates(0x1234567890abcdef).number(1, 6));

}  // namespace pmlab::indexes::detail::level_hashing
