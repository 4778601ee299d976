// A set-associative cache of names without contents: CPU cache, translation buffer.
#pragma once

#include <pmlab/base/hash.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pmlab::media {

// Keeps the keys used most recently, per set of eight. Keys are spread over the sets by a hash, so neighbours leave the
// cache in no particular order, as the lines of a real one do. Not thread-safe.
class tag_cache {
 public:
  struct touched {
    bool hit;
    bool evicted_dirty;     // `evicted` left the cache and was dirty
    std::uint64_t evicted;  // meaningful if evicted_dirty
  };

  // `entries` 0: nothing is ever in it, nor evicted from it.
  explicit tag_cache(std::uint64_t entries) : sets_((entries + ways - 1) / ways), words_(sets_ * ways) {}

  // Moves `key` (< 2^62) to the front; adds it if it is absent.
  touched touch(std::uint64_t key, bool dirty) noexcept {
    if (sets_ == 0) return {false, false, 0};
    std::uint64_t* const set = set_of(key);
    const std::uint64_t tag = tag_of(key);
    std::uint64_t moved = tag | (dirty ? dirty_bit : 0);
    for (std::size_t i = 0; i < ways; ++i) {
      const std::uint64_t here = set[i];
      set[i] = moved;
      if ((here & ~dirty_bit) == tag) {
        set[0] |= here & dirty_bit;
        return {true, false, 0};
      }
      moved = here;
    }
    return {false, (moved & dirty_bit) != 0, key_of(moved)};
  }

  // Changes nothing; a later call for `key` takes less time.
  void prefetch(std::uint64_t key) const noexcept {
    if (sets_ != 0) __builtin_prefetch(&words_[first_way_of(key)], 1);
  }

  // Moves `key` to the front if it is present; otherwise changes nothing.
  bool touch_if_present(std::uint64_t key) noexcept {
    if (sets_ == 0) return false;
    std::uint64_t* const set = set_of(key);
    const std::uint64_t tag = tag_of(key);
    for (std::size_t i = 0; i < ways; ++i) {
      const std::uint64_t here = set[i];
      if ((here & ~dirty_bit) != tag) continue;
      for (; i > 0; --i) set[i] = set[i - 1];
      set[0] = here;
      return true;
    }
    return false;
  }

  // Makes `key` clean; removes it if `drop`.
  void clean(std::uint64_t key, bool drop) noexcept {
    if (sets_ == 0) return;
    std::uint64_t* const set = set_of(key);
    for (std::size_t i = 0; i < ways; ++i)
      if ((set[i] & ~dirty_bit) == tag_of(key)) set[i] = drop ? 0 : tag_of(key);
  }

 private:
  static constexpr std::size_t ways = 8;
  static constexpr std::uint64_t dirty_bit = 1;

  // 0 is the empty way.
  [[nodiscard]] static std::uint64_t tag_of(std::uint64_t key) noexcept { return (key + 1) << 1; }
  [[nodiscard]] static std::uint64_t key_of(std::uint64_t word) noexcept { return (word >> 1) - 1; }

  [[nodiscard]] std::size_t first_way_of(std::uint64_t key) const noexcept {
    const std::uint64_t hash = (key * golden_ratio) >> 32;
    return ((hash * sets_) >> 32) * ways;
  }
  [[nodiscard]] std::uint64_t* set_of(std::uint64_t key) noexcept { return &words_[first_way_of(key)]; }

  std::uint64_t sets_;
  std::vector<std::uint64_t> words_;
};

}  // namespace pmlab::media
