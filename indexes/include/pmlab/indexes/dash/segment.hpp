// The segment of a Dash table: 64 buckets of 256 bytes, a stash, and the encoding of their slots.
#pragma once

#include <pmlab/indexes/detail/bijective_hash.hpp>
#include <pmlab/indexes/detail/entry_line.hpp>
#include <pmlab/indexes/detail/extendible/directory.hpp>
#include <pmlab/indexes/detail/extendible/slot_word.hpp>
#include <pmlab/indexes/detail/four_words.hpp>
#include <pmlab/indexes/detail/slot_bits.hpp>
#include <pmlab/media/lines.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::dash {

using extendible::live_bit;
using extendible::occupied;
using extendible::slot_word;

inline constexpr std::size_t bucket_bits = 6;
inline constexpr std::size_t buckets_per_segment = std::size_t{1} << bucket_bits;
inline constexpr std::size_t lines_per_bucket = media::xpline_bytes / media::cache_line_bytes;
inline constexpr std::size_t slots_per_bucket = lines_per_bucket * entries_per_line;
inline constexpr std::size_t lines_per_segment = buckets_per_segment * lines_per_bucket;
inline constexpr std::size_t buckets_per_group = 8;
inline constexpr std::size_t groups_per_segment = buckets_per_segment / buckets_per_group;

inline constexpr std::size_t stash_buckets = 3;
inline constexpr std::size_t stash_lines = stash_buckets * lines_per_bucket;
inline constexpr std::size_t entries_per_stash_line = 3;
inline constexpr std::size_t slots_per_segment =
    buckets_per_segment * slots_per_bucket + stash_lines * entries_per_stash_line;

// A key is stored as its hash, whose low 6 bits are implied by the bucket that the key belongs to, its home bucket. Two
// further bits select one of its lines, the home line. Their place stores:
//
//   63            6  5    2  1           0
//   | hash, upper  | filter | displaced | live |
//
//   live       the slot holds an entry
//   displaced  the entry belongs to the bucket before this one
//   filter     live or not: 4 of the line's 16 filter bits. They describe the entries that belong to this line and lie
//              elsewhere:
//                bits 0 to 9      their filter classes: overflow fingerprints
//                bits 10, 11      entries in this half of the stash
//                bit 12           entries in the next bucket
//                bits 13 to 15    entries in this bucket, 1 to 3 lines behind this one
//
// It is in the place of detail/entry_line.hpp's key. So all 2^64 keys and values can be stored, 16 of them in 256
// bytes, one 8-byte store adds or removes an entry, and an absent key is decided in its home line, unless an entry of
// its class lies elsewhere.
//
// "The next bucket" of the eighth in a group is the first one: a group of 8 buckets and the stash hold all entries that
// belong to the group, and one lock guards them.
//
// Filter bits only save searches, and no operation waits until they are durable: in a segment of an earlier run they
// are computed again (`recover`) before its first search.
inline constexpr slot_word displaced_bit = 2;
inline constexpr unsigned filter_shift = 2;
inline constexpr unsigned filter_bits_per_word = 4;
inline constexpr slot_word filter_mask = slot_word{15} << filter_shift;
inline constexpr slot_word hash_mask = ~((slot_word{1} << bucket_bits) - 1);

// The filter bits of a line. Word i has the bits from 4 i on.
using line_filter = std::uint16_t;
inline constexpr unsigned filter_classes = 10;
inline constexpr unsigned first_stash_bit = 10;
inline constexpr unsigned first_bucket_bit = 12;  // 0 lines behind: the next bucket
inline constexpr line_filter in_stash = 3U << first_stash_bit;
inline constexpr line_filter in_next_bucket = 1U << first_bucket_bit;
inline constexpr std::size_t lines_per_stash_half = stash_lines / 2;

[[nodiscard]] constexpr std::size_t bucket_of(std::uint64_t hash) noexcept { return hash % buckets_per_segment; }
[[nodiscard]] constexpr std::size_t line_of(std::uint64_t hash) noexcept {
  return (hash >> bucket_bits) % lines_per_bucket;
}
[[nodiscard]] constexpr std::size_t number_of_home_line(std::uint64_t hash) noexcept {
  return bucket_of(hash) * lines_per_bucket + line_of(hash);
}
[[nodiscard]] constexpr std::size_t group_of(std::uint64_t hash) noexcept {
  return bucket_of(hash) / buckets_per_group;
}
[[nodiscard]] constexpr unsigned class_of(std::uint64_t hash) noexcept {
  return static_cast<unsigned>((hash >> 8 & 0xff) * filter_classes >> 8);
}
[[nodiscard]] constexpr std::size_t next_bucket(std::size_t bucket) noexcept {
  return (bucket & ~(buckets_per_group - 1)) | ((bucket + 1) % buckets_per_group);
}
[[nodiscard]] constexpr std::size_t previous_bucket(std::size_t bucket) noexcept {
  return (bucket & ~(buckets_per_group - 1)) | ((bucket + buckets_per_group - 1) % buckets_per_group);
}
[[nodiscard]] constexpr slot_word live_word(std::uint64_t hash, bool is_displaced) noexcept {
  return (hash & hash_mask) | (is_displaced ? displaced_bit : 0) | live_bit;
}
[[nodiscard]] constexpr std::uint64_t hash_of(slot_word word, std::size_t bucket) noexcept {
  return (word & hash_mask) | ((word & displaced_bit) != 0 ? previous_bucket(bucket) : bucket);
}

// One device line.
struct alignas(media::xpline_bytes) bucket {
  std::array<entry_line, lines_per_bucket> lines;
};
static_assert(sizeof(bucket) == media::xpline_bytes);

// Three entries that may belong to any bucket of the segment, so that their hashes are stored whole.
//
//   0      8        16       24       32        40        48        56       64
//   | live | hash 0 | hash 1 | hash 2 | value 0 | value 1 | value 2 | unused |
//
// Bit i of `live`: slot i holds an entry. Its last store makes an entry valid, as in a bucket.
struct alignas(media::cache_line_bytes) stash_line {
  std::atomic<std::uint64_t> live;
  std::array<std::atomic<std::uint64_t>, entries_per_stash_line> hashes;
  std::array<std::atomic<std::uint64_t>, entries_per_stash_line> values;
  std::atomic<std::uint64_t> unused;

  // True if slot i holds an entry with this prefix. `live` is read first: a slot that another group fills meanwhile has
  // its hash before its bit.
  [[nodiscard]] bool holds_entry(std::size_t i, std::uint64_t prefix, unsigned local_depth) const noexcept {
    return (live.load(std::memory_order_acquire) >> i & 1) != 0 &&
           (hashes[i].load(std::memory_order_acquire) ^ prefix) >> (64 - local_depth) == 0;
  }
};
static_assert(sizeof(stash_line) == media::cache_line_bytes);

struct segment {
  std::array<bucket, buckets_per_segment> buckets;
  std::array<stash_line, stash_lines> stash;
};
static_assert(sizeof(segment) == (buckets_per_segment + stash_buckets) * media::xpline_bytes);

// A slot: of a bucket or of the stash. Both words lie in one line.
struct slot {
  std::atomic<std::uint64_t>* word = nullptr;  // whose store adds or removes the entry; nullptr: no slot
  std::atomic<std::uint64_t>* value = nullptr;
  slot_word entry_bits = 0;  // bits of `word`
  line_filter needed = 0;    // filter bits without which a search does not find the entry; 0: it is in its home line

  explicit operator bool() const noexcept { return word != nullptr; }
};

[[nodiscard]] inline entry_line& home_line(segment& s, std::uint64_t hash) noexcept {
  return s.buckets[bucket_of(hash)].lines[line_of(hash)];
}
[[nodiscard]] inline slot slot_in(entry_line& line, std::size_t index, line_filter needed) noexcept {
  return {&line.keys[index], &line.values[index], ~filter_mask, needed};
}
[[nodiscard]] inline slot slot_in(stash_line& line, std::size_t index, line_filter needed) noexcept {
  return {&line.live, &line.values[index], std::uint64_t{1} << index, needed};
}

// Which of `words` are `wanted`, ignoring their filter bits: bit i for word i.
[[nodiscard]] inline unsigned matches(const four_words& words, slot_word wanted) noexcept {
  return words.equal_to(wanted, ~filter_mask);
}

// True if an entry of the class of `hash` belongs to `home` and lies elsewhere.
[[nodiscard]] inline bool leads_away(const entry_line& home, std::uint64_t hash) noexcept {
  const unsigned bit = class_of(hash);
  const slot_word word = home.keys[bit / filter_bits_per_word].load(std::memory_order_acquire);
  return (word >> (filter_shift + bit % filter_bits_per_word) & 1) != 0;
}

// The filter bits that an entry of `hash` in (bucket, line) needs.
[[nodiscard]] constexpr line_filter needed_at(std::uint64_t hash, std::size_t bucket, std::size_t line) noexcept {
  const std::size_t behind =
      bucket != bucket_of(hash) ? 0 : (line + lines_per_bucket - line_of(hash)) % lines_per_bucket;
  if (behind == 0 && bucket == bucket_of(hash)) return 0;
  return static_cast<line_filter>(1U << class_of(hash) | 1U << (first_bucket_bit + behind));
}
// The same for a line of the stash.
[[nodiscard]] constexpr line_filter needed_in_stash(std::uint64_t hash, std::size_t line) noexcept {
  return static_cast<line_filter>(1U << class_of(hash) | 1U << (first_stash_bit + line / lines_per_stash_half));
}

// The filter bits of a line, without the first two words: these have bits of classes only, and are not read.
[[nodiscard]] inline unsigned places_away(const entry_line& home) noexcept {
  const auto bits = [&home](std::size_t word) {
    return static_cast<unsigned>((home.keys[word].load(std::memory_order_acquire) & filter_mask) >> filter_shift)
           << (word * filter_bits_per_word);
  };
  return bits(2) | bits(3);
}

// Calls visit(line, needed) for the lines in which the entry of `hash` may lie, according to its home line's filter,
// until it returns true. `needed`: the filter bits of an entry of `hash` there.
template <class Visit>
void for_each_line_away(segment& s, std::uint64_t hash, Visit&& visit) noexcept {
  const unsigned places = places_away(home_line(s, hash));
  const std::size_t home = bucket_of(hash);
  const auto visit_line = [&](std::size_t number, std::size_t behind) {
    const std::size_t line = (line_of(hash) + behind) % lines_per_bucket;
    return visit(s.buckets[number].lines[line], needed_at(hash, number, line));
  };
  for (std::size_t behind = 1; behind < lines_per_bucket; ++behind)
    if ((places >> (first_bucket_bit + behind) & 1) != 0 && visit_line(home, behind)) return;
  if ((places & in_next_bucket) != 0)
    for (std::size_t behind = 0; behind < lines_per_bucket; ++behind)
      if (visit_line(next_bucket(home), behind)) return;
  for (std::size_t i = 0; i < stash_lines; ++i)
    if (const line_filter needed = needed_in_stash(hash, i);
        (places & needed & in_stash) != 0 && visit(s.stash[i], needed))
      return;
}

// The slot of a line with the entry of `hash`, which needs these filter bits there.
[[nodiscard]] inline slot find_in_line(entry_line& line, std::uint64_t hash, line_filter needed) noexcept {
  const unsigned found = matches(four_words(line.keys), live_word(hash, (needed & in_next_bucket) != 0));
  return found == 0 ? slot{} : slot_in(line, static_cast<std::size_t>(std::countr_zero(found)), needed);
}
[[nodiscard]] inline slot find_in_line(stash_line& line, std::uint64_t hash, line_filter needed) noexcept {
  const std::uint64_t live = line.live.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < entries_per_stash_line; ++i)
    if ((live >> i & 1) != 0 && line.hashes[i].load(std::memory_order_acquire) == hash) return slot_in(line, i, needed);
  return {};
}

// True if the entry of `hash` is in its home line.
[[nodiscard]] inline bool is_at_home(segment& s, std::uint64_t hash) noexcept {
  return static_cast<bool>(find_in_line(home_line(s, hash), hash, 0));
}

// The slot of the entry of `hash` outside of its home line. Not inline: the search in the home line stays short.
template <class Visit>
[[nodiscard, gnu::noinline]] slot find_away(segment& s, std::uint64_t hash, Visit&& visit) noexcept {
  slot found;
  for_each_line_away(s, hash, [&](auto& line, line_filter needed) {
    visit(line);
    found = find_in_line(line, hash, needed);
    return static_cast<bool>(found);
  });
  return found;
}

// The slot of the entry of `hash`: in its home line, or elsewhere if the line's filter has its class. `visit(line)` is
// called before a line is read.
template <class Visit>
[[nodiscard]] slot find_in_segment(segment& s, std::uint64_t hash, Visit&& visit) noexcept {
  entry_line& home = home_line(s, hash);
  visit(home);
  if (const slot found = find_in_line(home, hash, 0)) [[likely]]
    return found;
  return leads_away(home, hash) ? find_away(s, hash, visit) : slot{};
}

// The value of the entry of `hash`; nullptr: there is none. A slot as the result would go through the stack, where
// searches that a processor runs ahead wait for each other.
template <class Visit>
[[nodiscard]] std::atomic<std::uint64_t>* find_value(segment& s, std::uint64_t hash, Visit&& visit) noexcept {
  entry_line& home = home_line(s, hash);
  visit(home);
  if (const unsigned found = matches(four_words(home.keys), live_word(hash, false)); found != 0) [[likely]]
    return &home.values[static_cast<std::size_t>(std::countr_zero(found))];
  return leads_away(home, hash) ? find_away(s, hash, visit).value : nullptr;
}

// `word` with another entry, or none, in it. Its filter bits are not the entry's: they stay.
[[nodiscard]] inline slot_word with_entry(const std::atomic<slot_word>& word, slot_word entry) noexcept {
  return (word.load(std::memory_order_relaxed) & filter_mask) | entry;
}

// Removes the entry of a slot, and leaves the rest of its word.
inline void clear_slot(const slot& at) noexcept {
  at.word->store(at.word->load(std::memory_order_relaxed) & ~at.entry_bits, std::memory_order_release);
}

inline constexpr unsigned all_slots = (1U << entries_per_line) - 1;

// Which words of a line of a segment with this prefix are entries: bit i for word i.
[[nodiscard]] inline unsigned entries_among(const four_words& words, std::uint64_t prefix,
                                            unsigned local_depth) noexcept {
  const std::uint64_t mask = ~std::uint64_t{0} << (64 - local_depth) | live_bit;
  return words.equal_to((prefix & mask) | live_bit, mask);
}
// Which of them belong to line `line` of their bucket, where they lie.
[[nodiscard]] inline unsigned entries_at_home(const four_words& words, std::size_t line, std::uint64_t prefix,
                                              unsigned local_depth) noexcept {
  constexpr std::uint64_t line_mask = (lines_per_bucket - 1) << bucket_bits;
  const std::uint64_t mask = ~std::uint64_t{0} << (64 - local_depth) | live_bit;
  return words.equal_to((prefix & mask) | line << bucket_bits | live_bit, mask | line_mask | displaced_bit);
}

// The free slots of a line of a segment with this prefix: bit i for slot i.
[[nodiscard]] inline unsigned free_slots(const entry_line& line, std::uint64_t prefix, unsigned local_depth) noexcept {
  return ~entries_among(four_words(line.keys), prefix, local_depth) & all_slots;
}
// How many slots of a bucket are free.
[[nodiscard]] inline unsigned count_free(const bucket& b, std::uint64_t prefix, unsigned local_depth) noexcept {
  constexpr std::uint64_t bits_set = 0x4332322132212110;  // in i: its hexadecimal digit i
  unsigned count = 0;
  for (const entry_line& line : b.lines)
    count += static_cast<unsigned>(bits_set >> (4 * free_slots(line, prefix, local_depth)) & 15);
  return count;
}

// A free slot of bucket `number` for `hash`, in its line or as near behind it as there is one.
[[nodiscard]] inline slot free_in_bucket(segment& s, std::size_t number, std::uint64_t hash,
                                         unsigned local_depth) noexcept {
  for (std::size_t i = 0; i < lines_per_bucket; ++i) {
    const std::size_t line_number = (line_of(hash) + i) % lines_per_bucket;
    entry_line& line = s.buckets[number].lines[line_number];
    if (const unsigned free = free_slots(line, hash, local_depth); free != 0)
      return slot_in(line, static_cast<std::size_t>(std::countr_zero(free)), needed_at(hash, number, line_number));
  }
  return {};
}

// A free slot for `hash` in its home line; or in a line of its home bucket that has another one for its own next entry;
// or in the emptier of its two buckets. As long as the home bucket has room for more than its own next entries it is
// preferred: a search there reads no further device line. The lines are tried in the order in which the hardware is
// likely to have them: the home line's pair first.
[[nodiscard]] inline slot free_in_buckets(segment& s, std::uint64_t hash, unsigned local_depth) noexcept {
  constexpr unsigned enough = 3;
  const std::size_t home = bucket_of(hash);
  const std::size_t next = next_bucket(home);
  if (const unsigned free = free_slots(home_line(s, hash), hash, local_depth); free != 0) [[likely]]
    return slot_in(home_line(s, hash), static_cast<std::size_t>(std::countr_zero(free)), 0);
  for (std::size_t i = 1; i < lines_per_bucket; ++i) {
    const std::size_t line_number = line_of(hash) ^ i;
    entry_line& line = s.buckets[home].lines[line_number];
    if (const unsigned free = free_slots(line, hash, local_depth); (free & (free - 1)) != 0)
      return slot_in(line, static_cast<std::size_t>(std::countr_zero(free)), needed_at(hash, home, line_number));
  }
  const unsigned at_home = count_free(s.buckets[home], hash, local_depth);
  const bool stays = at_home >= enough || at_home >= count_free(s.buckets[next], hash, local_depth);
  return free_in_bucket(s, stays ? home : next, hash, local_depth);
}

// A free slot of the stash for `hash`, and the place of its hash.
struct stash_place {
  slot free;
  std::atomic<std::uint64_t>* hash = nullptr;
};
[[nodiscard]] inline stash_place free_in_stash(segment& s, std::uint64_t hash, unsigned local_depth) noexcept {
  for (std::size_t i = 0; i < stash_lines; ++i)
    for (std::size_t k = 0; k < entries_per_stash_line; ++k)
      if (!s.stash[i].holds_entry(k, hash, local_depth))
        return {slot_in(s.stash[i], k, needed_in_stash(hash, i)), &s.stash[i].hashes[k]};
  return {};
}

// Sets filter bits of a line. One that has them already is not written.
inline void add_to_filter(entry_line& line, line_filter bits) noexcept {
  for (std::size_t i = 0; i < entries_per_line; ++i) {
    const slot_word wanted = slot_word{bits} >> (i * filter_bits_per_word) << filter_shift & filter_mask;
    const slot_word old = line.keys[i].load(std::memory_order_relaxed);
    if ((wanted & ~old) != 0) line.keys[i].store(old | wanted, std::memory_order_release);
  }
}
// Gives a line exactly these filter bits.
inline void set_filter(entry_line& line, line_filter bits) noexcept {
  for (std::size_t i = 0; i < entries_per_line; ++i) {
    const slot_word wanted = slot_word{bits} >> (i * filter_bits_per_word) << filter_shift & filter_mask;
    const slot_word old = line.keys[i].load(std::memory_order_relaxed);
    if ((old & filter_mask) != wanted) line.keys[i].store((old & ~filter_mask) | wanted, std::memory_order_release);
  }
}
[[nodiscard]] inline line_filter filter_of(const entry_line& line) noexcept {
  unsigned bits = 0;
  for (std::size_t i = 0; i < entries_per_line; ++i)
    bits |= static_cast<unsigned>((line.keys[i].load(std::memory_order_acquire) & filter_mask) >> filter_shift)
            << (i * filter_bits_per_word);
  return static_cast<line_filter>(bits);
}

// Calls function(hash, slot) for every slot of the buckets [first, end) with an entry of this prefix (upper bits of a
// hash).
template <class Function>
void for_each_slot_of_buckets(segment& s, std::size_t first, std::size_t end, std::uint64_t prefix,
                              unsigned local_depth, Function&& function) {
  for (std::size_t b = first; b < end; ++b)
    for (std::size_t l = 0; l < lines_per_bucket; ++l)
      for (std::size_t i = 0; i < entries_per_line; ++i) {
        entry_line& line = s.buckets[b].lines[l];
        const slot_word word = line.keys[i].load(std::memory_order_acquire);
        if (!occupied(word, prefix, local_depth)) continue;
        const std::uint64_t hash = hash_of(word, b);
        function(hash, slot_in(line, i, needed_at(hash, b, l)));
      }
}
// The same for the stash.
template <class Function>
void for_each_slot_of_stash(segment& s, std::uint64_t prefix, unsigned local_depth, Function&& function) {
  for (std::size_t l = 0; l < stash_lines; ++l)
    for (std::size_t i = 0; i < entries_per_stash_line; ++i) {
      if (!s.stash[l].holds_entry(i, prefix, local_depth)) continue;
      const std::uint64_t hash = s.stash[l].hashes[i].load(std::memory_order_acquire);
      function(hash, slot_in(s.stash[l], i, needed_in_stash(hash, l)));
    }
}
// The same for both.
template <class Function>
void for_each_slot(segment& s, std::uint64_t prefix, unsigned local_depth, Function&& function) {
  for_each_slot_of_buckets(s, 0, buckets_per_segment, prefix, local_depth, function);
  for_each_slot_of_stash(s, prefix, local_depth, function);
}

// The same as for_each_slot, for the entries outside of their home lines. The stash comes first: for it a search
// reads the most lines. Compares whole lines and decodes only these: a split delays an insert for as long as it takes.
template <class Visit>
void for_each_slot_away(segment& s, std::uint64_t prefix, unsigned local_depth, Visit&& visit) {
  for_each_slot_of_stash(s, prefix, local_depth, visit);
  for (std::size_t b = 0; b < buckets_per_segment; ++b)
    for (std::size_t l = 0; l < lines_per_bucket; ++l) {
      entry_line& line = s.buckets[b].lines[l];
      const four_words words(line.keys);
      const unsigned all = entries_among(words, prefix, local_depth);
      detail::for_each_slot(all & ~entries_at_home(words, l, prefix, local_depth), [&](std::size_t i) {
        const std::uint64_t hash = hash_of(line.keys[i].load(std::memory_order_acquire), b);
        visit(hash, slot_in(line, i, needed_at(hash, b, l)));
      });
    }
}

// The line of the other copy of an entry, nearer to its home line, or in it; nullptr: there is none. That copy counts:
//   * A displacement that a crash interrupted leaves one in either bucket, with the same value: the group stayed locked
//     until one of them was gone.
//   * An entry that `move_home` moved has its old copy until the removal of that is durable. The one in the home line
//     has the value since then.
[[nodiscard]] inline const entry_line* other_copy(const segment& s, std::uint64_t hash, const slot& at) noexcept {
  if (at.needed == 0) return nullptr;
  const std::size_t candidates = (at.needed & in_next_bucket) != 0 ? lines_per_bucket : 1;
  for (std::size_t i = 0; i < candidates; ++i) {
    const entry_line& line = s.buckets[bucket_of(hash)].lines[(line_of(hash) + i) % lines_per_bucket];
    if (matches(four_words(line.keys), live_word(hash, false)) != 0) return &line;
  }
  return nullptr;
}

// Calls function(hash, slot) for every entry of the segment whose keys have `prefix`, once also if there are two
// copies.
template <class Function>
void for_each_entry(segment& s, std::uint64_t prefix, unsigned local_depth, Function&& function) {
  for_each_slot(s, prefix, local_depth, [&](std::uint64_t hash, const slot& at) {
    if (other_copy(s, hash, at) == nullptr) function(hash, at);
  });
}

// Sets the filters of the segment's lines to the minimum for its entries.
inline void find_filters(segment& s, std::uint64_t prefix, unsigned local_depth) noexcept {
  std::array<line_filter, lines_per_segment> needed{};
  for_each_slot_away(s, prefix, local_depth,
                     [&needed](std::uint64_t hash, const slot& at) { needed[number_of_home_line(hash)] |= at.needed; });
  for (std::size_t i = 0; i < lines_per_segment; ++i) {
    entry_line& line = s.buckets[i / lines_per_bucket].lines[i % lines_per_bucket];
    const bool has_none = four_words(line.keys).equal_to(0, filter_mask) == all_slots;
    if (needed[i] != 0 || !has_none) set_filter(line, needed[i]);
  }
}

// The same for the home line of `hash` alone: after an entry that was not in it has gone.
inline void find_filter_of_line(segment& s, std::uint64_t hash, unsigned local_depth) noexcept {
  entry_line& home = home_line(s, hash);
  constexpr std::uint64_t line_mask = lines_per_segment - 1;
  line_filter needed = 0;
  const auto add = [&](std::uint64_t other, const slot& at) {
    if (((other ^ hash) & line_mask) == 0) needed |= at.needed;
  };
  const line_filter old = filter_of(home);
  for_each_slot_of_buckets(s, bucket_of(hash), bucket_of(hash) + 1, hash, local_depth, add);
  const std::size_t next = next_bucket(bucket_of(hash));
  if ((old & in_next_bucket) != 0) for_each_slot_of_buckets(s, next, next + 1, hash, local_depth, add);
  if ((old & in_stash) != 0) for_each_slot_of_stash(s, hash, local_depth, add);
  set_filter(home, needed);
}

// Slots with words that no operation stores there.
[[nodiscard]] inline std::size_t damaged_slots(const segment& s, std::uint64_t prefix, unsigned local_depth) noexcept {
  const unsigned made = extendible::depth_when_made(prefix, local_depth);
  std::size_t damaged = 0;
  for (const bucket& b : s.buckets)
    for (const entry_line& line : b.lines)
      for (const auto& word : line.keys)
        damaged += extendible::can_hold(word.load(std::memory_order_acquire), prefix, made, filter_mask) ? 0 : 1;
  for (const stash_line& line : s.stash) {
    const std::uint64_t live = line.live.load(std::memory_order_acquire);
    if (live >> entries_per_stash_line != 0 || line.unused.load(std::memory_order_acquire) != 0) {
      damaged += entries_per_stash_line;
      continue;
    }
    for (std::size_t i = 0; i < entries_per_stash_line; ++i)
      damaged += (live >> i & 1) == 0 || line.holds_entry(i, prefix, made) ? 0 : 1;
  }
  return damaged;
}

// Calls entry(hash, value) for every entry.
template <class Function>
void for_each_value(segment& s, std::uint64_t prefix, unsigned local_depth, Function&& entry) {
  for_each_entry(s, prefix, local_depth,
                 [&](std::uint64_t hash, const slot& at) { entry(hash, at.value->load(std::memory_order_acquire)); });
}

// Copies entries of the buckets to the same places of an empty segment that no other thread can reach yet: those slots
// of line `line` of a bucket that chosen(its words, line) names, bit i for slot i.
template <class Chosen>
void copy_lines(const segment& from, segment& to, Chosen&& chosen) noexcept {
  for (std::size_t b = 0; b < buckets_per_segment; ++b)
    for (std::size_t l = 0; l < lines_per_bucket; ++l) {
      const entry_line& old = from.buckets[b].lines[l];
      entry_line& line = to.buckets[b].lines[l];
      detail::for_each_slot(chosen(four_words(old.keys), l), [&](std::size_t i) {
        line.keys[i].store(old.keys[i].load(std::memory_order_relaxed) & ~filter_mask, std::memory_order_relaxed);
        line.values[i].store(old.values[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
      });
    }
}

// Copies the entry of `hash` from a slot to its home line. False: that line is full.
inline bool copy_home(segment& s, std::uint64_t hash, const slot& from, unsigned local_depth) noexcept {
  entry_line& home = home_line(s, hash);
  const unsigned free = free_slots(home, hash, local_depth);
  if (free == 0) return false;
  const auto i = static_cast<std::size_t>(std::countr_zero(free));
  // (H1) < (H2): one line, so no crash image holds the key without its value.
  home.values[i].store(from.value->load(std::memory_order_relaxed), std::memory_order_release);     // (H1)
  home.keys[i].store(with_entry(home.keys[i], live_word(hash, false)), std::memory_order_release);  // (H2)
  return true;
}

// Puts an entry into a segment that no other thread can reach yet. False: no room, without moving other entries.
[[nodiscard]] inline bool place_privately(segment& s, std::uint64_t hash, std::uint64_t value,
                                          unsigned local_depth) noexcept {
  slot at = free_in_buckets(s, hash, local_depth);
  if (at) {
    at.word->store(with_entry(*at.word, live_word(hash, (at.needed & in_next_bucket) != 0)), std::memory_order_relaxed);
  } else {
    const stash_place place = free_in_stash(s, hash, local_depth);
    if (!place.free) return false;
    at = place.free;
    place.hash->store(hash, std::memory_order_relaxed);
    at.word->store(at.word->load(std::memory_order_relaxed) | at.entry_bits, std::memory_order_relaxed);
  }
  at.value->store(value, std::memory_order_relaxed);
  add_to_filter(home_line(s, hash), at.needed);
  return true;
}

// Puts the entries with this prefix into the same places of an empty segment that no other thread can reach yet.
inline void copy_entries(const segment& from, segment& to, std::uint64_t prefix, unsigned local_depth) noexcept {
  copy_lines(from, to, [&](const four_words& words, std::size_t) { return entries_among(words, prefix, local_depth); });
  for (std::size_t l = 0; l < stash_lines; ++l)
    for (std::size_t i = 0; i < entries_per_stash_line; ++i) {
      const stash_line& old = from.stash[l];
      if (!old.holds_entry(i, prefix, local_depth)) continue;
      stash_line& line = to.stash[l];
      line.hashes[i].store(old.hashes[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
      line.values[i].store(old.values[i].load(std::memory_order_relaxed), std::memory_order_relaxed);
      line.live.store(line.live.load(std::memory_order_relaxed) | std::uint64_t{1} << i, std::memory_order_relaxed);
    }
  find_filters(to, prefix, local_depth);
}

}  // namespace pmlab::indexes::detail::dash
