// New leaves of an FP-tree: filled while they are unreachable, and then linked into the list; a whole row by one store.
#pragma once

#include <pmlab/indexes/detail/load_into.hpp>
#include <pmlab/indexes/fp_tree/descriptor.hpp>
#include <pmlab/indexes/fp_tree/leaf.hpp>
#include <pmlab/indexes/fp_tree/leaf_store.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <span>

namespace pmlab::indexes::detail::fp_tree {

// Puts these entries into a leaf that is not linked, as all that it has, and begins to write it back, with the link
// that it has already. The caller fences.
template <media::medium Medium>
void fill(Medium& medium, const leaf_store<Medium>& store, descriptor& d, std::span<const entry> entries) noexcept {
  leaf& home = *d.home;
  d.clear_marks();
  slot_set taken = 0;
  const auto put = [&](const entry& e, slot_set free) {
    const auto at = static_cast<std::size_t>(std::countr_zero(free));
    home.slots[at].key.store(e.key, std::memory_order_relaxed);
    home.slots[at].value.store(e.value, std::memory_order_relaxed);
    d.set_byte(at, fingerprint_of(e.key));
    taken |= slot_set{1} << at;
  };
  // Entries whose home lines are full wait until all others have their places. The slots beside the bitmap are the last
  // choice: free ones make the next inserts cheap.
  slot_set waiting = 0;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (const slot_set free = slots_of_line(home_line(entries[i].key)) & ~taken; free != 0)
      put(entries[i], free);
    else
      waiting |= slot_set{1} << i;
  for_each_slot(waiting, [&](std::size_t i) {
    const slot_set free = all_slots & ~taken;
    const slot_set elsewhere = free & ~slots_of_line(0);
    put(entries[i], elsewhere != 0 ? elsewhere : free);
  });
  home.bitmap.store(store.bitmap_of(home, taken), std::memory_order_relaxed);
  const auto width = static_cast<std::size_t>(std::bit_width(taken));
  // (N1) before the caller's fence, and that before the list leads to the leaf.
  // Redundant when no slot of a line below the last used one is used.
  medium.flush(&home, offsetof(leaf, slots) + width * sizeof(slot));  // (N1)
}

// Makes an unreachable descriptor one of the tree.
inline void put_in_charge(descriptor& d, key_type low, key_type last, descriptor* next) noexcept {
  low_of(d).store(low, std::memory_order_release);
  d.last.store(last, std::memory_order_release);
  d.next.store(next, std::memory_order_release);
  d.set_linked(true);
}

// Entries of a leaf that is loaded: room for a few more before it splits.
inline constexpr std::size_t loaded_entries = capacity * 6 / 7;

// New leaves, locked, and the entries that they are for: all but the last one get loaded_entries.
struct leaf_row {
  static constexpr std::size_t most_leaves = 16;

  std::array<descriptor*, most_leaves> leaves;
  std::size_t count = 0;
  std::span<const entry> entries;

  [[nodiscard]] std::span<const entry> of(std::size_t i) const noexcept {
    return entries.subspan(i * loaded_entries, std::min(loaded_entries, entries.size() - i * loaded_entries));
  }
  [[nodiscard]] key_type low(std::size_t i) const noexcept { return entries[i * loaded_entries].key; }
};

// Allocates leaves for the entries whose keys are at most `last`, as many as fit into a row. Without space: for the
// first of them only, or for none.
template <media::medium Medium>
[[nodiscard]] leaf_row take_row(leaf_store<Medium>& store, std::span<const entry> ascending, key_type last) {
  const auto wanted = fit_into_row(ascending, leaf_row::most_leaves * loaded_entries, last);
  leaf_row row;
  while (row.count * loaded_entries < wanted.size()) {
    descriptor* const taken = store.take();
    if (taken == nullptr) break;
    taken->lock.lock();
    row.leaves[row.count++] = taken;
  }
  row.entries = wanted.first(std::min(wanted.size(), row.count * loaded_entries));
  return row;
}

// Fills a row and links it on the right of a locked leaf, all of whose keys are lower.
template <media::medium Medium>
void link_row(Medium& medium, const leaf_store<Medium>& store, descriptor& left, const leaf_row& row) noexcept {
  media::pointer<leaf> next = left.home->next.load(std::memory_order_relaxed);
  descriptor* next_descriptor = left.next.load(std::memory_order_relaxed);
  key_type last = left.last.load(std::memory_order_relaxed);
  for (std::size_t i = row.count; i-- > 0;) {
    descriptor& made = *row.leaves[i];
    made.home->next.store(next, std::memory_order_relaxed);
    fill(medium, store, made, row.of(i));
    put_in_charge(made, row.low(i), last, next_descriptor);
    next = medium.locate(made.home);
    next_descriptor = &made;
    last = row.low(i) - 1;
  }
  medium.fence();                                          // (W1)
  left.home->next.store(next, std::memory_order_release);  // (W2) commit
  left.home->bitmap.store(store.bitmap_of(*left.home, left.read_marks().used()), std::memory_order_release);  // (W3)
  media::persist(medium, left.home->next);                                                                    // (W4)
  // (N1) < (W1) < (W2): the row is whole before the list leads to it (P1). One store: of an interrupted row
  // all is there, or nothing but free leaves.
  // (W2) < (W3): one line. A seal that is of the link before tells of such a crash (L4).
  // (W3) < (W4) < unlock: the value that a reader returns is durable.
  left.next.store(next_descriptor, std::memory_order_release);
  left.last.store(last, std::memory_order_release);
}

}  // namespace pmlab::indexes::detail::fp_tree
