// The segment of a CCEH table: 64 windows of 256 bytes, and the encoding of a slot.
#pragma once

#include <pmlab/indexes/detail/bijective_hash.hpp>
#include <pmlab/indexes/detail/entry_line.hpp>
#include <pmlab/indexes/detail/extendible/directory.hpp>
#include <pmlab/indexes/detail/extendible/slot_word.hpp>
#include <pmlab/indexes/detail/four_words.hpp>
#include <pmlab/media/lines.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::cceh {

inline constexpr std::size_t window_bits = 6;
inline constexpr std::size_t windows_per_segment = std::size_t{1} << window_bits;
inline constexpr std::size_t lines_per_window = media::xpline_bytes / media::cache_line_bytes;
inline constexpr std::size_t slots_per_window = lines_per_window * entries_per_line;
inline constexpr std::size_t slots_per_segment = windows_per_segment * slots_per_window;

// A key is stored as its hash, whose low 6 bits are implied by the window that the key belongs to. Their place stores:
//
//   63            6  5      3  2          1    0
//   | hash, upper  | overflow | displacement | live |
//
//   live          the slot holds an entry
//   displacement  d: the entry belongs to window (this window XOR d)
//   overflow      live or not: the places of entries that belong to this line of this window and found no room in it:
//                   word 0, bit d-1       in window (this window XOR d)
//                   word i > 0, bit c     in line (this line + i) mod 4, and their overflow class is c
//
// It is in the place of detail/entry_line.hpp's key. So all 2^64 keys and values can be stored, 16 of them in 256
// bytes, one 8-byte store adds or removes an entry, and a search reads no line in which the key cannot be.
//
// An entry counts if its prefix is its segment's: the half that a split moved stays behind until it is overwritten.
// Overflow bits only save searches, and no operation waits until they are durable: in a segment of an earlier run they
// are computed again (`find_overflow`) before its first search.
using extendible::live_bit;
using extendible::occupied;
using extendible::slot_word;

inline constexpr unsigned overflow_shift = 3;
inline constexpr std::size_t overflow_bits_per_word = 3;
inline constexpr slot_word overflow_mask = slot_word{7} << overflow_shift;
inline constexpr slot_word hash_mask = ~((slot_word{1} << window_bits) - 1);
inline constexpr std::size_t displacements = 4;  // 0 = at home, and three neighbours in the same KB

[[nodiscard]] constexpr slot_word overflow_bit(std::size_t number) noexcept {
  return slot_word{1} << (overflow_shift + number);
}
[[nodiscard]] constexpr std::size_t window_of(std::uint64_t hash) noexcept { return hash % windows_per_segment; }
[[nodiscard]] constexpr std::size_t home_line_of(std::uint64_t hash) noexcept {
  return (hash >> window_bits) % lines_per_window;
}
[[nodiscard]] constexpr std::size_t overflow_class_of(std::uint64_t hash) noexcept {
  return (((hash >> 8) & 0xff) * overflow_bits_per_word) >> 8;
}
[[nodiscard]] constexpr slot_word live_word(std::uint64_t hash, std::size_t displacement) noexcept {
  return (hash & hash_mask) | (displacement << 1) | live_bit;
}
[[nodiscard]] constexpr std::size_t displacement_of(slot_word word) noexcept { return (word >> 1) % displacements; }
[[nodiscard]] constexpr std::uint64_t hash_of(slot_word word, std::size_t window) noexcept {
  return (word & hash_mask) | (window ^ displacement_of(word));
}

// One device line.
struct alignas(media::xpline_bytes) window {
  std::array<entry_line, lines_per_window> lines;
};
static_assert(sizeof(window) == media::xpline_bytes);

struct segment {
  std::array<window, windows_per_segment> windows;
};
static_assert(sizeof(segment) == 16384);

// A slot of a segment; `line == nullptr`: none.
struct slot {
  entry_line* line = nullptr;
  std::size_t index = 0;

  explicit operator bool() const noexcept { return line != nullptr; }
  [[nodiscard]] std::atomic<slot_word>& word() const noexcept { return line->keys[index]; }
  [[nodiscard]] std::atomic<std::uint64_t>& value() const noexcept { return line->values[index]; }
};

// Which of `words` are `wanted`, ignoring their overflow bits: bit i for word i.
[[nodiscard]] inline unsigned matches(const four_words& words, slot_word wanted) noexcept {
  return words.equal_to(wanted, ~overflow_mask);
}

// A slot, and in which directions its window's home line overflows into other windows (bits of its word 0).
struct window_search {
  slot found;
  slot_word overflow = 0;
};

// The slot of `w` that holds the entry of `hash` with this displacement: in its home line, or where that line's
// overflow bits lead. `visit(line)` is called before a line is read.
template <class Visit>
[[nodiscard]] window_search find_in_window(window& w, std::uint64_t hash, std::size_t displacement,
                                           Visit&& visit) noexcept {
  const slot_word wanted = live_word(hash, displacement);
  const std::size_t home = home_line_of(hash);
  visit(w.lines[home]);
  const four_words words(w.lines[home].keys);
  if (const unsigned found = matches(words, wanted); found != 0) [[likely]]
    return {{&w.lines[home], static_cast<std::size_t>(std::countr_zero(found))}};
  const slot_word bit = overflow_bit(overflow_class_of(hash));
  if (const unsigned leads = words.equal_to(bit, bit) & ~1U; leads != 0) [[unlikely]]
    for (std::size_t i = 1; i < lines_per_window; ++i) {
      if ((leads >> i & 1U) == 0) continue;
      entry_line& line = w.lines[(home + i) % lines_per_window];
      visit(line);
      if (const unsigned found = matches(four_words(line.keys), wanted); found != 0)
        return {{&line, static_cast<std::size_t>(std::countr_zero(found))}};
    }
  return {{}, words[0] & overflow_mask};
}

// The slot that holds the entry of `hash`: in its own window, or where its home line's overflow bits lead.
template <class Visit>
[[nodiscard]] slot find_in_segment(segment& s, std::uint64_t hash, Visit&& visit) noexcept {
  const std::size_t home = window_of(hash);
  const window_search at_home = find_in_window(s.windows[home], hash, 0, visit);
  if (at_home.found || at_home.overflow == 0) [[likely]]
    return at_home.found;
  for (std::size_t d = 1; d < displacements; ++d) {
    if ((at_home.overflow & overflow_bit(d - 1)) == 0) continue;
    if (const slot found = find_in_window(s.windows[home ^ d], hash, d, visit).found) return found;
  }
  return {};
}

// Where an entry of `hash` lies or may be put: (window XOR displacement), (home line + line_offset), index.
struct position {
  detail::cceh::slot slot;
  std::size_t displacement = 0;
  std::size_t line_offset = 0;
};

// A place for a new entry of `hash`: as near to its home line as there is one. No slot: the segment must be split.
[[nodiscard]] inline position free_in_segment(segment& s, std::uint64_t hash, unsigned local_depth) noexcept {
  for (std::size_t d = 0; d < displacements; ++d)
    for (std::size_t offset = 0; offset < lines_per_window; ++offset) {
      entry_line& line = s.windows[window_of(hash) ^ d].lines[(home_line_of(hash) + offset) % lines_per_window];
      for (std::size_t index = 0; index < entries_per_line; ++index)
        if (!occupied(line.keys[index].load(std::memory_order_acquire), hash, local_depth))
          return {{&line, index}, d, offset};
    }
  return {};
}

// `word` with another entry, or none, in it. Its overflow bits are not the entry's: they stay.
[[nodiscard]] inline slot_word with_entry(const std::atomic<slot_word>& word, slot_word entry) noexcept {
  return (word.load(std::memory_order_relaxed) & overflow_mask) | entry;
}

// A word of a segment that holds overflow bits, and one of them.
struct overflow_place {
  std::size_t window;
  std::size_t line;
  std::size_t index;
  slot_word bit;
};

// Calls `function(overflow_place)` for the overflow bits without which a search does not find an entry of `hash` at
// `at`: one in its own window, if it is displaced; one in the window where it lies, if that is not its home line.
template <class Function>
void for_each_overflow_bit(std::uint64_t hash, const position& at, Function&& function) {
  const std::size_t home = window_of(hash);
  const std::size_t line = home_line_of(hash);
  if (at.displacement != 0) function(overflow_place{home, line, 0, overflow_bit(at.displacement - 1)});
  if (at.line_offset != 0)
    function(overflow_place{home ^ at.displacement, line, at.line_offset, overflow_bit(overflow_class_of(hash))});
}

[[nodiscard]] inline std::atomic<slot_word>& word_at(segment& s, const overflow_place& place) noexcept {
  return s.windows[place.window].lines[place.line].keys[place.index];
}

// Makes the entry of `hash` at `at` visible to searches. A line whose bits cover it already is not written.
inline void lead_to(segment& s, std::uint64_t hash, const position& at) noexcept {
  for_each_overflow_bit(hash, at, [&s](const overflow_place& place) {
    std::atomic<slot_word>& word = word_at(s, place);
    const slot_word old = word.load(std::memory_order_relaxed);
    if ((old & place.bit) == 0) word.store(old | place.bit, std::memory_order_release);
  });
}

// Calls `function(window, slot)` for every slot that has more than overflow bits: entries, those that a split has left
// behind, and what no operation stores.
template <class Function>
void for_each_used_slot(segment& s, Function&& function) {
  for (std::size_t w = 0; w < windows_per_segment; ++w)
    for (entry_line& line : s.windows[w].lines)
      for (std::size_t index = 0; index < entries_per_line; ++index)
        if ((line.keys[index].load(std::memory_order_acquire) & ~overflow_mask) != 0) function(w, slot{&line, index});
}

// Calls `function(hash, position)` for every entry of the segment whose keys have `prefix` (upper bits of a hash).
template <class Function>
void for_each_entry(segment& s, std::uint64_t prefix, unsigned local_depth, Function&& function) {
  for (std::size_t w = 0; w < windows_per_segment; ++w)
    for (std::size_t line = 0; line < lines_per_window; ++line)
      for (std::size_t index = 0; index < entries_per_line; ++index) {
        entry_line& l = s.windows[w].lines[line];
        const slot_word word = l.keys[index].load(std::memory_order_acquire);
        if (!occupied(word, prefix, local_depth)) continue;
        const std::uint64_t hash = hash_of(word, w);
        const std::size_t offset = (line + lines_per_window - home_line_of(hash)) % lines_per_window;
        function(hash, position{{&l, index}, displacement_of(word), offset});
      }
}

// Slots with words that no operation stores there.
[[nodiscard]] inline std::size_t damaged_slots(const segment& s, std::uint64_t prefix, unsigned local_depth) noexcept {
  const unsigned made = extendible::depth_when_made(prefix, local_depth);
  std::size_t damaged = 0;
  for (const window& w : s.windows)
    for (const entry_line& line : w.lines)
      for (const auto& word : line.keys)
        damaged += extendible::can_hold(word.load(std::memory_order_acquire), prefix, made, overflow_mask) ? 0 : 1;
  return damaged;
}

// Calls entry(hash, value) for every entry.
template <class Function>
void for_each_value(segment& s, std::uint64_t prefix, unsigned local_depth, Function&& entry) {
  for_each_entry(s, prefix, local_depth, [&](std::uint64_t hash, const position& at) {
    entry(hash, at.slot.value().load(std::memory_order_acquire));
  });
}

// Sets the overflow bits that are missing in a segment of an earlier run. It delays the first results of a reopened
// table, so it compares whole lines and decodes only the few entries that are not in their home lines.
inline void find_overflow(segment& s, std::uint64_t prefix, unsigned local_depth) noexcept {
  const std::uint64_t prefix_mask = ~std::uint64_t{0} << (64 - local_depth);
  constexpr slot_word displacement_mask = slot_word{displacements - 1} << 1;
  constexpr slot_word home_line_mask = slot_word{lines_per_window - 1} << window_bits;
  const slot_word live = (prefix & prefix_mask) | live_bit;
  for (std::size_t w = 0; w < windows_per_segment; ++w)
    for (std::size_t l = 0; l < lines_per_window; ++l) {
      entry_line& line = s.windows[w].lines[l];
      const four_words words(line.keys);
      const unsigned entries = words.equal_to(live, prefix_mask | live_bit);
      const unsigned at_home =
          words.equal_to(live | (l << window_bits), prefix_mask | live_bit | displacement_mask | home_line_mask);
      for (unsigned away = entries & ~at_home; away != 0; away &= away - 1) {
        const auto index = static_cast<std::size_t>(std::countr_zero(away));
        const std::uint64_t hash = hash_of(words[index], w);
        const std::size_t offset = (l + lines_per_window - home_line_of(hash)) % lines_per_window;
        lead_to(s, hash, {{&line, index}, displacement_of(words[index]), offset});
      }
    }
}

// Sets the overflow bits of a segment to the minimum for its entries: after half of them have moved away.
inline void tidy_overflow(segment& s, std::uint64_t prefix, unsigned local_depth) noexcept {
  std::array<std::array<std::array<slot_word, entries_per_line>, lines_per_window>, windows_per_segment> needed{};
  for_each_entry(s, prefix, local_depth, [&needed](std::uint64_t hash, const position& at) {
    for_each_overflow_bit(hash, at, [&needed](const overflow_place& place) {
      needed[place.window][place.line][place.index] |= place.bit;
    });
  });
  for (std::size_t w = 0; w < windows_per_segment; ++w)
    for (std::size_t line = 0; line < lines_per_window; ++line)
      for (std::size_t index = 0; index < entries_per_line; ++index) {
        std::atomic<slot_word>& word = s.windows[w].lines[line].keys[index];
        const slot_word old = word.load(std::memory_order_relaxed);
        const slot_word wanted = (old & ~overflow_mask) | needed[w][line][index];
        if (wanted != old) word.store(wanted, std::memory_order_release);
      }
}

// Puts an entry into a segment that no other thread can reach yet. False: no room. There is always room for the entries
// of another segment, since the windows that an entry may lie in are the same four in both.
[[nodiscard]] inline bool place_privately(segment& s, std::uint64_t hash, std::uint64_t value,
                                          unsigned local_depth) noexcept {
  const position at = free_in_segment(s, hash, local_depth);
  if (!at.slot) return false;
  at.slot.value().store(value, std::memory_order_relaxed);
  at.slot.word().store(with_entry(at.slot.word(), live_word(hash, at.displacement)), std::memory_order_relaxed);
  lead_to(s, hash, at);
  return true;
}

}  // namespace pmlab::indexes::detail::cceh
