// Random numbers whose sequence is the same in every build: a failing seed replays anywhere.
#pragma once

#include <cstdint>

namespace pmlab::verify {

// The splitmix64 sequence. Not thread-safe: one per thread.
class random {
 public:
  explicit random(std::uint64_t seed) noexcept : state_(seed) {}

  std::uint64_t next() noexcept {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

  // In [0, bound); `bound` > 0. The bias of the remainder is far below what a test could notice.
  std::uint64_t below(std::uint64_t bound) noexcept { return next() % bound; }

  // True once in `times` on average.
  bool one_in(std::uint64_t times) noexcept { return below(times) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace pmlab::verify
