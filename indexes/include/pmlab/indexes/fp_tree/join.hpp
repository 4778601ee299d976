// Joins two neighbours of an FP-tree into one leaf: selects them, and moves the entries of both to the left one.
#pragma once

#include <pmlab/indexes/fp_tree/descriptor.hpp>
#include <pmlab/indexes/fp_tree/flush_slots.hpp>
#include <pmlab/indexes/fp_tree/leaf.hpp>
#include <pmlab/indexes/fp_tree/leaf_store.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::fp_tree {

// Entries of two joined neighbours: two slots stay free, so that the next inserts do not split the leaf again.
inline constexpr std::size_t most_joined = capacity - 2;

// A leaf searches for a neighbour to join with when an erase leaves so many entries, and a multiple of join_step. So at
// most every third erase searches, and two neighbours keep most_joined + 1 - 2 * (join_step - 1) = 26 entries: 13 a
// leaf, half of those of a `load`. Histories that are not adversarial stay well above.
inline constexpr std::size_t join_from = most_joined - 1;
inline constexpr std::size_t join_step = 3;

// True if a locked leaf, in which an erase left these slots, should search for a neighbour.
[[nodiscard]] inline bool looks_for_a_neighbour(slot_set left) noexcept {
  const auto entries = static_cast<std::size_t>(std::popcount(left));
  return entries <= join_from && entries % join_step == 0;
}

// True if these neighbours should be one leaf. An empty one is unlinked instead. Without the locks only a hint.
[[nodiscard]] inline bool should_join(const descriptor& left, const descriptor& right) noexcept {
  const slot_set in_left = left.read_marks().used();
  const slot_set in_right = right.read_marks().used();
  return in_left != 0 && in_right != 0 &&
         static_cast<std::size_t>(std::popcount(in_left) + std::popcount(in_right)) <= most_joined;
}

// Moves the entries of `right` to its left neighbour, which has room for them, and removes `right` from the medium's
// list. Both are locked. Durable on return, and `right` is empty.
template <media::medium Medium>
void take_in(Medium& medium, const leaf_store<Medium>& store, descriptor& left, descriptor& right) noexcept {
  leaf& to = *left.home;
  leaf& from = *right.home;
  media::annotate_read(medium, from);
  const slot_set old = left.read_marks().used();
  slot_set moved = 0;
  for_each_slot(right.read_marks().used(), [&](std::size_t i) {
    const std::uint64_t key = from.slots[i].key.load(std::memory_order_relaxed);
    const std::size_t at = slot_for(key, all_slots & ~(old | moved));
    to.slots[at].value.store(from.slots[i].value.load(std::memory_order_relaxed), std::memory_order_release);  // (J1)
    to.slots[at].key.store(key, std::memory_order_release);                                                    // (J2)
    left.set_byte(at, fingerprint_of(key));
    moved |= slot_set{1} << at;
  });
  flush_slots(medium, to, moved);                                                       // (J3)
  medium.fence();                                                                       // (J4)
  to.bitmap.store(store.bitmap_of(to, old | moved), std::memory_order_release);         // (J5)
  to.next.store(from.next.load(std::memory_order_relaxed), std::memory_order_release);  // (J6) commit
  to.bitmap.store(store.bitmap_of(to, old | moved), std::memory_order_release);         // (J7)
  medium.flush(&to, offsetof(leaf, slots));                                             // (J8)
  medium.fence();                                                                       // (J9)
  from.bitmap.store(store.bitmap_of(from, 0), std::memory_order_release);               // (J10)
  media::persist(medium, from.bitmap);                                                  // (J11)
  // (J1), (J2) < (J3) < (J4) < (J5): a bit never shows an entry that is not whole. For the slots beside the bitmap the
  // order of the stores is enough.
  // (J5) < (J6): one line, so that no crash image lacks what has moved. One with (J5) alone has it twice (L3), as one
  // of a split has: recovery takes it out of the left leaf.
  // (J6) < (J7): one line. A seal that is of the link to `from` tells of a crash between the two (L4).
  // (J7) < (J8) < (J9) < (J10): `from` gives up nothing that the left leaf does not durably have. A crash before leaves
  // it outside the list with entries, and recovery empties it.
  // (J10) < (J11) < unlock: a leaf outside the list that looks alive was lost.
}

}  // namespace pmlab::indexes::detail::fp_tree
