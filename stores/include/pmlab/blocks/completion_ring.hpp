// Completions that wait to be reaped.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/device.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace pmlab::blocks {

// First in, first out, of fixed capacity. Belongs to one queue, and so to one thread.
class completion_ring {
 public:
  // Throws pmlab::error if `depth` is 0.
  explicit completion_ring(unsigned depth) : places_(depth) {
    if (depth == 0) throw error("a queue of depth 0", "choose a depth of at least 1");
  }

  // There must be room.
  void push(completion c) noexcept {
    std::size_t at = first_ + size_;
    if (at >= places_.size()) at -= places_.size();
    places_[at] = c;
    ++size_;
  }

  // Moves as many as fit into `completions`; returns how many.
  [[nodiscard]] std::size_t pop(std::span<completion> completions) noexcept {
    const std::size_t count = std::min(completions.size(), size_);
    for (std::size_t i = 0; i < count; ++i) {
      completions[i] = places_[first_];
      if (++first_ == places_.size()) first_ = 0;
    }
    size_ -= count;
    return count;
  }

  // Completions in it.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // Completions that it still has room for.
  [[nodiscard]] std::size_t room() const noexcept { return places_.size() - size_; }
  // Completions that it has room for when it is empty.
  [[nodiscard]] unsigned capacity() const noexcept { return static_cast<unsigned>(places_.size()); }

 private:
  std::vector<completion> places_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace pmlab::blocks
