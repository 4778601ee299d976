// One block of a search layer: a line of header, one of fences and nine of sorted entries, in DRAM.
#pragma once

#include <pmlab/base/simd.hpp>
#include <pmlab/indexes/detail/entry_line.hpp>
#include <pmlab/indexes/detail/word_counts.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace pmlab::indexes::detail {

//   0      8     16     24     32      40         64            128            192             704
//   | lock | low | last | next | shape | reserved | fences 0..7 | entry line 0 | entry line 1 ... |
//
// A block is in charge of the keys from `low` to `last`, both included. Its entries are the first `count` slots, in
// ascending order of keys; the keys of the others are 2^64 - 1, so that a search counts without reading the number of
// entries. Fence i is the first key of entry line i + 1: one comparison of all of them finds the line, so that a search
// reads three lines of the block. Words are read under the version of `lock`, and written with the lock held.
struct alignas(media::cache_line_bytes) search_block {
  static constexpr std::size_t lines_per_block = 9;
  static constexpr std::size_t capacity = lines_per_block * entries_per_line;
  static constexpr std::uint64_t free_key = ~std::uint64_t{0};

  enum class states : std::uint8_t {
    unannounced,  // linked, and the level above does not know it
    announced,    // linked, and the level above leads to it
    dead,         // removed; its range belongs to the block on its left
  };

  // The state that a search reads first, in one word.
  struct shape {
    std::uint16_t count;
    std::uint16_t level;
    states state;

    [[nodiscard]] constexpr std::uint64_t word() const noexcept {
      return count | std::uint64_t{level} << 16 | static_cast<std::uint64_t>(state) << 32;
    }
    [[nodiscard]] static constexpr shape of(std::uint64_t word) noexcept {
      return {static_cast<std::uint16_t>(word), static_cast<std::uint16_t>(word >> 16),
              static_cast<states>(word >> 32)};
    }
  };

  sync::version_lock lock;
  std::atomic<std::uint64_t> low{0};
  std::atomic<std::uint64_t> last{free_key};
  std::atomic<search_block*> next{nullptr};
  std::atomic<std::uint64_t> shape_word{shape{0, 0, states::dead}.word()};
  std::array<std::byte, 24> reserved{};
  alignas(media::cache_line_bytes) atomic_words<lines_per_block - 1> fences;
  std::array<entry_line, lines_per_block> lines;

  search_block() noexcept { clear_from(0); }

  [[nodiscard]] std::atomic<std::uint64_t>& word(std::size_t slot) noexcept {
    return lines[slot / entries_per_line].values[slot % entries_per_line];
  }
  [[nodiscard]] std::uint64_t key_at(std::size_t slot) const noexcept {
    return lines[slot / entries_per_line].keys[slot % entries_per_line].load(std::memory_order_acquire);
  }
  [[nodiscard]] std::uint64_t word_at(std::size_t slot) const noexcept {
    return lines[slot / entries_per_line].values[slot % entries_per_line].load(std::memory_order_acquire);
  }

  [[nodiscard]] shape read_shape() const noexcept { return shape::of(shape_word.load(std::memory_order_acquire)); }
  [[nodiscard]] std::size_t size() const noexcept { return read_shape().count; }
  [[nodiscard]] std::size_t level() const noexcept { return read_shape().level; }
  [[nodiscard]] states state() const noexcept { return read_shape().state; }
  [[nodiscard]] bool is_dead() const noexcept { return state() == states::dead; }
  [[nodiscard]] bool is_in_charge_of(std::uint64_t k) const noexcept {
    return !is_dead() && low.load(std::memory_order_acquire) <= k && k <= last.load(std::memory_order_acquire);
  }

  // Number of the first `entries` entries with keys <= k. Without a branch on the keys. `Words`: see word_counts.hpp.
  template <class Words>
  [[nodiscard, gnu::always_inline]] std::size_t count_up_to(std::uint64_t k, std::size_t entries) const noexcept {
    const std::size_t line = Words::count_up_to(fences, k);
    return std::min(line * entries_per_line + Words::count_up_to(lines[line].keys, k), entries);
  }
  // Counts by the vector instructions of this CPU.
  [[nodiscard]] std::size_t count_up_to(std::uint64_t k, std::size_t entries) const noexcept {
#if defined(__x86_64__)
    switch (simd_of_this_cpu()) {
      case simd::avx512: return count_up_to_by_avx512(k, entries);
      case simd::avx2: return count_up_to_by_avx2(k, entries);
      default: break;
    }
#endif
    return count_up_to<words_one_by_one>(k, entries);
  }
  [[nodiscard]] std::size_t count_up_to(std::uint64_t k) const noexcept { return count_up_to(k, size()); }

  // Prefetches the entries; the two lines before them are read at once in any case. No loop, for the same reason.
  [[gnu::always_inline]] void prefetch_entries() const noexcept {
    prefetch_entries(std::make_index_sequence<lines_per_block>());
  }
  void prefetch() const noexcept {
    __builtin_prefetch(this);
    __builtin_prefetch(&fences);
    prefetch_entries();
  }

  // ---- with the lock held, or private ----

  void set(std::size_t slot, std::uint64_t k, std::uint64_t w) noexcept {
    const std::size_t line = slot / entries_per_line;
    lines[line].values[slot % entries_per_line].store(w, std::memory_order_release);
    lines[line].keys[slot % entries_per_line].store(k, std::memory_order_release);
    if (slot % entries_per_line == 0 && line > 0) fences[line - 1].store(k, std::memory_order_release);
  }

  void set_count(std::size_t entries) noexcept {
    shape s = read_shape();
    s.count = static_cast<std::uint16_t>(entries);
    shape_word.store(s.word(), std::memory_order_release);
  }
  void set_state(states state) noexcept {
    shape s = read_shape();
    s.state = state;
    shape_word.store(s.word(), std::memory_order_release);
  }

  // Adds (k, w) at `slot`, the result of count_up_to(k). REQUIRES: there is room.
  void insert_at(std::size_t slot, std::uint64_t k, std::uint64_t w) noexcept {
    const std::size_t entries = size();
    for (std::size_t i = entries; i > slot; --i) set(i, key_at(i - 1), word_at(i - 1));
    set(slot, k, w);
    set_count(entries + 1);
  }

  void erase_at(std::size_t slot) noexcept {
    const std::size_t entries = size();
    for (std::size_t i = slot; i + 1 < entries; ++i) set(i, key_at(i + 1), word_at(i + 1));
    clear_from(entries - 1);
  }

  // Leaves the first `entries` entries.
  void clear_from(std::size_t entries) noexcept {
    for (std::size_t i = entries; i < capacity; ++i) set(i, free_key, 0);
    set_count(entries);
  }

  // Makes this, an unreachable block, one of `of_level` in charge of [from, to]. Late readers may still read it.
  void begin(std::size_t of_level, std::uint64_t from, std::uint64_t to, search_block* successor) noexcept {
    low.store(from, std::memory_order_release);
    last.store(to, std::memory_order_release);
    next.store(successor, std::memory_order_release);
    clear_from(0);
    shape_word.store(shape{0, static_cast<std::uint16_t>(of_level), states::unannounced}.word(),
                     std::memory_order_release);
  }

 private:
#if defined(__x86_64__)
  [[gnu::target("avx512vl,avx512dq,popcnt")]] std::size_t count_up_to_by_avx512(std::uint64_t k,
                                                                                std::size_t entries) const noexcept {
    return count_up_to<words_by_avx512>(k, entries);
  }
  [[gnu::target("avx2,popcnt")]] std::size_t count_up_to_by_avx2(std::uint64_t k, std::size_t entries) const noexcept {
    return count_up_to<words_by_avx2>(k, entries);
  }
#endif

  template <std::size_t... I>
  [[gnu::always_inline]] void prefetch_entries(std::index_sequence<I...> /*all*/) const noexcept {
    (__builtin_prefetch(&lines[I]), ...);
  }
};
static_assert(sizeof(search_block) == 704);
static_assert(offsetof(search_block, fences) == media::cache_line_bytes);
static_assert(offsetof(search_block, lines) == 2 * media::cache_line_bytes);
static_assert(sizeof(search_block::fences) == media::cache_line_bytes);

}  // namespace pmlab::indexes::detail
