// The random numbers of the workloads: the same for a seed on every machine, compiler and standard library.
#pragma once

#include "tools/workload/keys.hpp"

#include <array>
#include <bit>
#include <cstdint>

namespace pmlab::workload {

// A xoshiro256** generator (Blackman and Vigna): period 2^256 - 1, about a nanosecond a number. Not for secrets.
// Not thread-safe: one per thread.
class random_source {
 public:
  // `stream` tells apart the generators of one seed, such as those of several threads.
  explicit random_source(std::uint64_t seed, std::uint64_t stream = 0) noexcept {
    std::uint64_t position = detail::mix_bits(seed) + stream * 0xd1342543de82ef95;
    for (std::uint64_t& word : state_) word = detail::mix_bits(position += detail::key_offset);
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

  // Uniform over [0, limit), exactly: what would favour some results is drawn again. `limit` is at least 1.
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

}  // namespace pmlab::workload
