// One block of a search layer: a line of header and seven lines of sorted entries, in DRAM.
#pragma once

#include <pmlab/indexes/detail/entry_line.hpp>
#include <pmlab/indexes/detail/four_words.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail {

//   0       8     16     24     32      40      48      64              128             512
//   | lock  | low | last | next | count | level | state | entry line 0  | entry line 1 ...|
//
// A block is in charge of the keys from `low` to `last`, both included. Its entries are the first `count` slots, in
// ascending order of keys; the keys of the others are 2^64 - 1, so that a search counts without asking how many there
// are. Words are read under the version of `lock`, and written with the lock held.
struct alignas(media::cache_line_bytes) search_block {
  static constexpr std::size_t lines_per_block = 7;
  static constexpr std::size_t capacity = lines_per_block * entries_per_line;
  static constexpr std::uint64_t free_key = ~std::uint64_t{0};

  enum class states : std::uint64_t {
    unannounced,  // linked, and the level above does not know it
    announced,    // linked, and the level above leads to it
    dead,         // taken out; its range belongs to the block on its left
  };

  sync::version_lock lock;
  std::atomic<std::uint64_t> low{0};
  std::atomic<std::uint64_t> last{free_key};
  std::atomic<search_block*> next{nullptr};
  std::atomic<std::uint64_t> count{0};
  std::atomic<std::uint64_t> level{0};
  std::atomic<states> state{states::dead};
  std::array<entry_line, lines_per_block> lines;

  search_block() noexcept { clear_from(0); }

  [[nodiscard]] std::atomic<std::uint64_t>& key(std::size_t slot) noexcept {
    return lines[slot / entries_per_line].keys[slot % entries_per_line];
  }
  [[nodiscard]] std::atomic<std::uint64_t>& word(std::size_t slot) noexcept {
    return lines[slot / entries_per_line].values[slot % entries_per_line];
  }
  [[nodiscard]] std::uint64_t key_at(std::size_t slot) noexcept { return key(slot).load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t word_at(std::size_t slot) noexcept { return word(slot).load(std::memory_order_acquire); }
  [[nodiscard]] std::size_t size() const noexcept { return count.load(std::memory_order_acquire); }

  [[nodiscard]] bool is_dead() const noexcept { return state.load(std::memory_order_acquire) == states::dead; }
  [[nodiscard]] bool is_in_charge_of(std::uint64_t k) const noexcept {
    return !is_dead() && low.load(std::memory_order_acquire) <= k && k <= last.load(std::memory_order_acquire);
  }

  // How many entries have keys <= k. Without a branch on the keys: first the lines that begin at or below k, then the
  // slots of the last of them.
  [[nodiscard]] std::size_t count_up_to(std::uint64_t k) const noexcept {
    std::size_t begun = 0;
    for (const entry_line& line : lines)
      begun += static_cast<std::size_t>(line.keys[0].load(std::memory_order_acquire) <= k);
    const std::size_t last_line = begun == 0 ? 0 : begun - 1;
    return std::min(last_line * entries_per_line + four_words(lines[last_line].keys).count_up_to(k), size());
  }

  void prefetch() const noexcept {
    const auto* const bytes = reinterpret_cast<const char*>(this);
    for (std::size_t i = 0; i < sizeof(search_block); i += media::cache_line_bytes) __builtin_prefetch(bytes + i);
  }

  // ---- with the lock held ----

  void set(std::size_t slot, std::uint64_t k, std::uint64_t w) noexcept {
    word(slot).store(w, std::memory_order_release);
    key(slot).store(k, std::memory_order_release);
  }

  // Adds (k, w) at `slot`, where count_up_to(k) says; there is room.
  void insert_at(std::size_t slot, std::uint64_t k, std::uint64_t w) noexcept {
    const std::size_t entries = size();
    for (std::size_t i = entries; i > slot; --i) set(i, key_at(i - 1), word_at(i - 1));
    set(slot, k, w);
    count.store(entries + 1, std::memory_order_release);
  }

  void erase_at(std::size_t slot) noexcept {
    const std::size_t entries = size();
    for (std::size_t i = slot; i + 1 < entries; ++i) set(i, key_at(i + 1), word_at(i + 1));
    clear_from(entries - 1);
  }

  // Leaves the first `entries` entries.
  void clear_from(std::size_t entries) noexcept {
    for (std::size_t i = entries; i < capacity; ++i) set(i, free_key, 0);
    count.store(entries, std::memory_order_release);
  }

  // Makes this, a block that nobody leads to, one of `of_level` in charge of [from, to]. Late readers may still look.
  void begin(std::uint64_t of_level, std::uint64_t from, std::uint64_t to, search_block* successor) noexcept {
    low.store(from, std::memory_order_release);
    last.store(to, std::memory_order_release);
    next.store(successor, std::memory_order_release);
    level.store(of_level, std::memory_order_release);
    clear_from(0);
    state.store(states::unannounced, std::memory_order_release);
  }
};
static_assert(sizeof(search_block) == 512);
static_assert(offsetof(search_block, lines) == media::cache_line_bytes);

}  // namespace pmlab::indexes::detail
