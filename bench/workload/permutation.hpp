// A pseudo-random permutation of 0..size-1 that needs no table.
#pragma once

#include <bit>
#include <cstdint>

namespace pmlab::workload {

// Scatters the popular ranks of a skewed distribution over the records, so that popular records are not neighbours.
// A bijection for every size: probabilities of ranks carry over to records exactly, none are merged (as they are where
// a rank is hashed modulo the number of records). Constant memory, a few nanoseconds. Thread-safe (immutable).
class permutation {
 public:
  // `size` is at least 1.
  explicit permutation(std::uint64_t size) noexcept
      : size_(size),
        bits_(size > 1 ? static_cast<int>(std::bit_width(size - 1)) : 1),
        mask_(~std::uint64_t{0} >> (64 - bits_)) {}

  // `position` is less than the size; so is the result.
  [[nodiscard]] std::uint64_t operator()(std::uint64_t position) const noexcept {
    // A bijection of the next power of two, applied until it lands inside: a walk along one of its cycles, which
    // starts inside and so returns there. Two steps or fewer on average.
    do position = scramble(position);
    while (position >= size_);
    return position;
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }

 private:
  // Each line is a bijection of the words of bits_ bits.
  [[nodiscard]] std::uint64_t scramble(std::uint64_t word) const noexcept {
    const int half = (bits_ + 1) / 2;
    word = (word * 0xd6e8feb86659fd93 + 0x632be59bd9b4e019) & mask_;
    word ^= word >> half;
    word = (word * 0xa0761d6478bd642f + 0xe7037ed1a0b428db) & mask_;
    word ^= word >> half;
    return (word * 0x8ebc6af09c88c6e3 + 0x589965cc75374cc3) & mask_;
  }

  std::uint64_t size_;
  int bits_;
  std::uint64_t mask_;
};

}  // namespace pmlab::workload
