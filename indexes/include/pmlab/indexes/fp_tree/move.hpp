// A leaf of an FP-tree moves to another place in the medium, so that its group can go.
#pragma once

#include <pmlab/indexes/fp_tree/descriptor.hpp>
#include <pmlab/indexes/fp_tree/leaf.hpp>
#include <pmlab/indexes/fp_tree/leaf_store.hpp>
#include <pmlab/indexes/fp_tree/row.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <bit>
#include <cstddef>

namespace pmlab::indexes::detail::fp_tree {

// Moves the entries of leaf `from` to `to`, a free leaf, and puts that in its place: in the medium's list and among the
// descriptors. `left` is its left neighbour; all three are locked. Durable on return, and `from` is empty.
template <media::medium Medium>
void move_leaf(Medium& medium, const leaf_store<Medium>& store, descriptor& left, descriptor& from,
               descriptor& to) noexcept {
  leaf& before = *left.home;
  leaf& source = *from.home;
  leaf& target = *to.home;
  media::annotate_read(medium, source);
  const slot_set used = from.read_marks().used();
  target.next.store(source.next.load(std::memory_order_relaxed), std::memory_order_relaxed);
  for_each_slot(used, [&](std::size_t i) {
    target.slots[i].value.store(source.slots[i].value.load(std::memory_order_relaxed), std::memory_order_relaxed);
    target.slots[i].key.store(source.slots[i].key.load(std::memory_order_relaxed), std::memory_order_relaxed);
  });
  target.bitmap.store(store.bitmap_of(target, used), std::memory_order_relaxed);
  const auto width = static_cast<std::size_t>(std::bit_width(used));
  // Redundant when no slot of a line below the last used one is used.
  medium.flush(&target, offsetof(leaf, slots) + width * sizeof(slot));                                // (V1)
  medium.fence();                                                                                     // (V2)
  before.next.store(medium.locate(&target), std::memory_order_release);                               // (V3) commit
  before.bitmap.store(store.bitmap_of(before, left.read_marks().used()), std::memory_order_release);  // (V4)
  media::persist(medium, before.next);                                                                // (V5)
  source.bitmap.store(store.bitmap_of(source, 0), std::memory_order_release);                         // (V6)
  media::persist(medium, source.bitmap);                                                              // (V7)
  // (V1) < (V2) < (V3): the copy is whole, its link included, before the list leads to it. A crash before leaves it
  // outside the list, and recovery empties it.
  // (V3) < (V4): one line. A seal that is of the link to `source` tells of a crash between the two (L4).
  // (V4) < (V5) < (V6): `source` gives up nothing that the list does not durably have elsewhere. A crash before leaves
  // it outside the list with entries, and recovery empties it.
  // (V6) < (V7) < unlock: a leaf outside the list that looks alive was lost.

  for (std::size_t i = 0; i < mark_words; ++i)
    to.bytes[i].store(from.bytes[i].load(std::memory_order_relaxed), std::memory_order_release);
  put_in_charge(to, low_of(from).load(std::memory_order_relaxed), from.last.load(std::memory_order_relaxed),
                from.next.load(std::memory_order_relaxed));
  left.next.store(&to, std::memory_order_release);
  from.clear_marks();
}

}  // namespace pmlab::indexes::detail::fp_tree
