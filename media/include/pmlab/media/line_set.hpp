// A set of line numbers that is emptied often.
#pragma once

#include <pmlab/base/hash.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace pmlab::media {

// Open addressing, at most half full; emptied by counting up, in O(1). Grows and never shrinks. Not thread-safe.
class line_set {
 public:
  line_set() : slots_(initial_slots) {}

  // True if `line` was not in the set. Throws std::bad_alloc.
  bool insert(std::uint64_t line) {
    if (2 * (size_ + 1) > slots_.size()) grow();
    return place(line);
  }

  void clear() noexcept {
    ++generation_;
    size_ = 0;
  }

 private:
  static constexpr std::size_t initial_slots = 64;

  struct slot {
    std::uint64_t line = 0;
    std::uint64_t generation = 0;  // empty unless it is the set's
  };

  bool place(std::uint64_t line) noexcept {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t i = (line * golden_ratio) >> 32;; ++i) {
      slot& s = slots_[i & mask];
      if (s.generation != generation_) {
        s = {line, generation_};
        ++size_;
        return true;
      }
      if (s.line == line) return false;
    }
  }

  void grow() {
    const std::vector<slot> old = std::exchange(slots_, std::vector<slot>(2 * slots_.size()));
    size_ = 0;
    for (const slot& s : old)
      if (s.generation == generation_) place(s.line);
  }

  std::vector<slot> slots_;
  std::size_t size_ = 0;
  std::uint64_t generation_ = 1;
};

}  // namespace pmlab::media
