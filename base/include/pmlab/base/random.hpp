// Random numbers whose sequence is the same for a seed on every machine, compiler and standard library. Not for
// secrets.
//
// Thread safety of all of them: one generator per thread.
#pragma once

#include <pmlab/base/hash.hpp>

#include <array>
#include <bit>
#include <cstdint>

namespace pmlab {

// The SplitMix64 sequence: one word of state. For tests and the checker, where a failing seed must replay.
class splitmix64 {
 public:
  // The same seed gives the same sequence.
  explicit splitmix64(std::uint64_t seed) noexcept : state_(seed) {}

  // Uniform over all 2^64 words.
  std::uint64_t next() noexcept { return mix_bits(state_ += golden_ratio); }

  // In [0, bound); `bound` > 0. The bias of the remainder is far below what a test could notice.
  std::uint64_t below(std::uint64_t bound) noexcept { return next() % bound; }

  // True once in `times` on average.
  bool one_in(std::uint64_t times) noexcept { return below(times) == 0; }

 private:
  std::uint64_t state_;
};

// A xoshiro256** generator (Blackman and Vigna): period 2^256 - 1, about a nanosecond a number. For workloads.
class random_source {
 public:
  // `stream` distinguishes generators of one seed, for example those of several threads.
  explicit random_source(std::uint64_t seed, std::uint64_t stream = 0) noexcept {
    std::uint64_t position = mix_bits(seed) + stream * 0xd1342543de82ef95;
    for (std::uint64_t& word : state_) word = mix_bits(position += golden_ratio);
  }

  // Uniform over all 2^64 words.
  std::uint64_t next() noexcept {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform over the multiples of 2^-53 in [0, 1).
  double unit() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }

  // Uniform over [0, limit), exactly: biased draws are repeated. `limit` is at least 1.
  std::uint64_t below(std::uint64_t limit) noexcept {
    __extension__ using wide = unsigned __int128;
    wide product = static_cast<wide>(next()) * limit;
    if (static_cast<std::uint64_t>(product) < limit) {
      const std::uint64_t unfair = -limit % limit;
      while (static_cast<std::uint64_t>(product) < unfair) product = static_cast<wide>(next()) * limit;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

 private:
  std::array<std::uint64_t, 4> state_;
};

// The xorshift64 sequence (Marsaglia): three shifts a number, never 0. For models of devices, which draw at every
// access.
class xorshift64 {
 public:
  // The next number, from 1 to 2^64 - 1.
  [[nodiscard]] std::uint64_t next() noexcept {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

  // At least 0, below 1.
  [[nodiscard]] double unit() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_ = 1;
};

}  // namespace pmlab
