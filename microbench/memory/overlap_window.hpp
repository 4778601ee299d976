// Independent loads on a memory that must be informed of them: each is requested some distance ahead of the wait for
// it, as an out-of-order core does.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pmlab::microbench {

// The loads under way, across calls. Not thread-safe.
class overlap_window {
 public:
  // ask(start, bytes) for the next piece of the access, then wait(start, bytes) for the pieces that are far enough
  // back.
  template <class Ask, class Wait>
  void load(std::byte* place, std::uint64_t bytes, Ask&& ask, Wait&& wait) {
    for (std::uint64_t done = 0; done < bytes;) {
      const std::uint64_t some = bytes - done < most_bytes ? bytes - done : most_bytes;
      ask(place + done, some);
      while (under_way_ != 0 && (bytes_under_way_ + some > window_bytes || under_way_ == pieces_.size()))
        wait_first(wait);
      pieces_[(first_ + under_way_++) % pieces_.size()] = {place + done, some};
      bytes_under_way_ += some;
      done += some;
    }
  }

  template <class Wait>
  void finish(Wait&& wait) {
    while (under_way_ != 0) wait_first(wait);
  }

 private:
  struct piece {
    std::byte* start = nullptr;
    std::uint64_t bytes = 0;
  };
  static constexpr std::uint64_t most_bytes = 1024;    // bytes of a piece: less than the first level of a cache
  static constexpr std::uint64_t window_bytes = 4096;  // more than any core has under way: the medium is the limit

  template <class Wait>
  void wait_first(Wait&& wait) {
    const piece p = pieces_[first_];
    first_ = (first_ + 1) % pieces_.size();
    --under_way_;
    bytes_under_way_ -= p.bytes;
    wait(p.start, p.bytes);
  }

  std::array<piece, 64> pieces_{};
  std::size_t first_ = 0;
  std::size_t under_way_ = 0;
  std::uint64_t bytes_under_way_ = 0;
};

}  // namespace pmlab::microbench
