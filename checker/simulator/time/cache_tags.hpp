// Which lines a cache holds, in sets, the ones used most recently first.
#pragma once

#include <pmlab/base/hash.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pmlab::simulator {

// Keys are line numbers; contents and states are kept elsewhere. Sets are chosen by a hash, so neighbours leave in no
// particular order. Not thread-safe.
template <std::size_t ways>
class cache_tags {
 public:
  using word = std::uint32_t;
  static constexpr word none = 0;

  explicit cache_tags(std::uint64_t bytes) : sets_(bytes / 64 / ways), words_(sets_ * ways, none) {}

  [[nodiscard]] bool has_room() const noexcept { return sets_ != 0; }

  // Puts `key`, which is here, first.
  void touch(std::uint32_t key) noexcept {
    word* const set = set_of(key);
    word moved = key + 1;
    for (std::size_t i = 0; i < ways; ++i) {
      const word here = set[i];
      set[i] = moved;
      if (here == key + 1) return;
      moved = here;
    }
  }

  // Adds `key`, which is not here, and has_room(). True if a line had to leave: `evicted`.
  [[nodiscard]] bool insert(std::uint32_t key, std::uint32_t& evicted) noexcept {
    word* const set = set_of(key);
    word moved = key + 1;
    for (std::size_t i = 0; i < ways; ++i) {
      const word here = set[i];
      set[i] = moved;
      if (here == none) return false;
      moved = here;
    }
    evicted = moved - 1;
    return true;
  }

  void remove(std::uint32_t key) noexcept {
    if (sets_ == 0) return;
    word* const set = set_of(key);
    for (std::size_t i = 0; i < ways; ++i)
      if (set[i] == key + 1) set[i] = none;
  }

 private:
  [[nodiscard]] word* set_of(std::uint32_t key) noexcept {
    const std::uint64_t hash = (key * golden_ratio) >> 32;
    return &words_[((hash * sets_) >> 32) * ways];
  }

  std::uint64_t sets_;
  std::vector<word> words_;
};

}  // namespace pmlab::simulator
