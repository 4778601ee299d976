// The changes of a locked segment of a Dash table, whatever the locks are: of dash, and of pod::shared_dash for several
// hosts.
#pragma once

#include <pmlab/indexes/dash/segment.hpp>
#include <pmlab/indexes/detail/entry_line.hpp>
#include <pmlab/indexes/detail/four_words.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::dash {

// Adds the entry of `hash`, which is absent, in a free slot of a bucket. Durable on return; one flush and one fence.
template <media::medium Medium>
void store_entry(Medium& medium, const slot& to, std::uint64_t hash, std::uint64_t value) {
  const bool is_displaced = (to.needed & in_next_bucket) != 0;
  // (P1) < (P2): one line, so no crash image holds the key without its value.
  to.value->store(value, std::memory_order_release);  // (P1)
  to.word->store(with_entry(*to.word, live_word(hash, is_displaced)),
                 std::memory_order_release);  // (P2) commit
  media::persist(medium, *to.word);           // (P3)
  // (P2) < (P3) < unlock: the value that a reader returns is durable.
}

// The same in the stash, which the caller has locked, too.
template <media::medium Medium>
void store_in_stash(Medium& medium, const stash_place& to, std::uint64_t hash, std::uint64_t value) {
  // (K1) < (K2) < (K3): one line, as (P1) < (P2). A slot that a split left behind is live already: its hash commits.
  to.free.value->store(value, std::memory_order_release);  // (K1)
  to.hash->store(hash, std::memory_order_release);         // (K2)
  to.free.word->store(to.free.word->load(std::memory_order_relaxed) | to.free.entry_bits,
                      std::memory_order_release);  // (K3) commit
  media::persist(medium, *to.free.word);           // (K4)
  // (K3) < (K4) < unlock: as (P3).
}

// Removes the entry of a slot; of the stash: which the caller has locked, too. Durable on return; one flush and one
// fence.
template <media::medium Medium>
void remove_entry(Medium& medium, const slot& found) {
  clear_slot(found);                    // (E1) commit
  media::persist(medium, *found.word);  // (E2)
  // (E1) < (E2) < unlock: a reader that misses the key answers only when its removal is durable.
}

// An entry that can move to its other bucket.
struct possible_move {
  slot from;               // as a slot for the entry that needs room
  slot to;                 // none: no entry can move
  std::uint64_t hash = 0;  // that of the moving entry
};

// The first entry of bucket `from` that can move to bucket `to`, if there is room in that: one that is (or is not)
// displaced, and never one in its home line: searches would not find it there any more, and there may be an old copy of
// it (dash.hpp, `tidy`). `needs_room`: the hash for which there is no slot.
[[nodiscard]] inline possible_move move_between(segment& s, std::uint64_t needs_room, std::size_t from, std::size_t to,
                                                bool is_displaced, unsigned local_depth) noexcept {
  for (std::size_t l = 0; l < lines_per_bucket; ++l)
    for (std::size_t i = 0; i < entries_per_line; ++i) {
      entry_line& line = s.buckets[from].lines[l];
      const slot_word word = line.keys[i].load(std::memory_order_relaxed);
      if (((word & displaced_bit) != 0) != is_displaced) continue;
      const std::uint64_t hash = hash_of(word, from);
      if (needed_at(hash, from, l) == 0) continue;
      return {slot_in(line, i, needed_at(needs_room, from, l)), free_in_bucket(s, to, hash, local_depth), hash};
    }
  return {};
}
// A slot in the full buckets of `needs_room`, whose entry can move to its own other bucket: one of the next bucket to
// the bucket behind it, or one of the home bucket to the bucket before it, where it belongs. None: those are full, too.
[[nodiscard]] inline possible_move find_move(segment& s, std::uint64_t needs_room, unsigned local_depth) noexcept {
  const std::size_t home = bucket_of(needs_room);
  const std::size_t next = next_bucket(home);
  if (const possible_move found = move_between(s, needs_room, next, next_bucket(next), false, local_depth); found.to)
    return found;
  return move_between(s, needs_room, home, previous_bucket(home), true, local_depth);
}

// Puts the entries of `from` with this prefix into the empty segment `to`, which no other thread can reach yet: in
// their home lines, as far as there is room. False: not all of them. There is room for them where they are
// (copy_entries).
[[nodiscard]] inline bool place_at_home(segment& from, segment& to, std::uint64_t prefix,
                                        unsigned local_depth) noexcept {
  // First all entries for which there is room in their home lines: another one there would take their places.
  copy_lines(from, to, [&](const four_words& words, std::size_t line) {
    return entries_at_home(words, line, prefix, local_depth);
  });
  for_each_slot_away(from, prefix, local_depth,
                     [&](std::uint64_t hash, const slot& at) { copy_home(to, hash, at, local_depth); });
  bool all_placed = true;
  for_each_slot_away(from, prefix, local_depth, [&](std::uint64_t hash, const slot& at) {
    if (is_at_home(to, hash)) return;
    all_placed = all_placed && place_privately(to, hash, at.value->load(std::memory_order_relaxed), local_depth);
  });
  return all_placed;
}

}  // namespace pmlab::indexes::detail::dash
