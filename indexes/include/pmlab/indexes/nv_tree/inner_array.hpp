// The array at the top of an NV-Tree: an implicit tree of cache lines, never changed after it was built.
#pragma once

#include <pmlab/base/simd.hpp>
#include <pmlab/indexes/detail/search_block.hpp>
#include <pmlab/indexes/detail/word_counts.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/lines.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

namespace pmlab::indexes::detail::nv_tree {

// Finds the block with the greatest low <= a key.
//
//   top line:        | k | k | k | k | k | k | k | k |      key i: the first key of line i of the level below
//                      |       \.
//   level below:     | line 0 | line 1 | ... | line 7 |     lines of eight keys, one after the other
//
// The lines below line i are 8 i, 8 i + 1, ... of the next level, so there are no pointers: a line of 64 bytes has
// eight keys, and a search reads one line of each level. Free places at the end have the greatest key.
class inner_array {
 public:
  // nullptr: no memory. `blocks` ascend by their low, and the first one's is 0.
  [[nodiscard]] static inner_array* make(std::span<search_block* const> blocks) {
    std::unique_ptr<inner_array> made(new (std::nothrow) inner_array);
    if (made == nullptr || !made->build(blocks)) return nullptr;
    return made.release();
  }

  [[nodiscard]] search_block* find(key_type key) const noexcept {
#if defined(__x86_64__)
    switch (simd_of_this_cpu()) {
      case simd::avx512: return find_by_avx512(key);
      case simd::avx2: return find_by_avx2(key);
      default: break;
    }
#endif
    return find_by<words_one_by_one>(key);
  }

  // Frees the array before this one together with it.
  void keep(inner_array* older) noexcept { older_.reset(older); }

  [[nodiscard]] std::size_t size() const noexcept { return levels_[0].keys; }
  [[nodiscard]] search_block* operator[](std::size_t i) const noexcept { return blocks_[i]; }
  [[nodiscard]] std::size_t levels() const noexcept { return level_count_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return sizeof *this + lines_in_all_ * sizeof(line) + size() * sizeof(search_block*);
  }

 private:
  static constexpr std::size_t keys_per_line = media::cache_line_bytes / sizeof(key_type);
  static constexpr std::size_t most_levels = 22;  // 8^22 > 2^64

  struct alignas(media::cache_line_bytes) line {
    atomic_words<keys_per_line> keys;
  };
  struct level {
    std::size_t first_line = 0;
    std::size_t keys = 0;
  };

  inner_array() = default;

  [[nodiscard]] static constexpr std::size_t lines_for(std::size_t keys) noexcept {
    return (keys + keys_per_line - 1) / keys_per_line;
  }

  bool build(std::span<search_block* const> blocks) {
    for (std::size_t keys = blocks.size();; keys = lines_for(keys)) {
      levels_[level_count_++] = {lines_in_all_, keys};
      lines_in_all_ += lines_for(keys);
      if (keys <= keys_per_line) break;
    }
    lines_.reset(new (std::nothrow) line[lines_in_all_]);
    blocks_.reset(new (std::nothrow) search_block*[blocks.size()]);
    if (lines_ == nullptr || blocks_ == nullptr) return false;
    std::copy(blocks.begin(), blocks.end(), blocks_.get());
    for (std::size_t l = 0; l < level_count_; ++l)
      for (std::size_t i = 0; i < lines_for(levels_[l].keys) * keys_per_line; ++i)
        key_at(l, i).store(i < levels_[l].keys ? key_below(l, i) : search_block::free_key, std::memory_order_relaxed);
    return true;
  }

  [[nodiscard]] std::atomic<key_type>& key_at(std::size_t l, std::size_t i) const noexcept {
    return lines_[levels_[l].first_line + i / keys_per_line].keys[i % keys_per_line];
  }
  [[nodiscard]] key_type key_below(std::size_t l, std::size_t i) const noexcept {
    return l == 0 ? blocks_[i]->low.load(std::memory_order_relaxed)
                  : key_at(l - 1, i * keys_per_line).load(std::memory_order_relaxed);
  }

  template <class Words>
  [[nodiscard, gnu::always_inline]] search_block* find_by(key_type key) const noexcept {
    std::size_t place = 0;
    for (std::size_t l = level_count_; l-- > 0;) {
      const line& here = lines_[levels_[l].first_line + place];
      // The first key of the line is not greater. The free places at the end of the last line may be equal.
      place = std::min(place * keys_per_line + Words::count_up_to(here.keys, key), levels_[l].keys) - 1;
    }
    return blocks_[place];
  }
#if defined(__x86_64__)
  [[gnu::target("avx512vl,avx512dq,popcnt")]] search_block* find_by_avx512(key_type key) const noexcept {
    return find_by<words_by_avx512>(key);
  }
  [[gnu::target("avx2,popcnt")]] search_block* find_by_avx2(key_type key) const noexcept {
    return find_by<words_by_avx2>(key);
  }
#endif

  std::array<level, most_levels> levels_;  // from the bottom
  std::size_t level_count_ = 0;
  std::size_t lines_in_all_ = 0;
  std::unique_ptr<line[]> lines_;
  std::unique_ptr<search_block*[]> blocks_;
  std::unique_ptr<inner_array> older_;
};

}  // namespace pmlab::indexes::detail::nv_tree
