// Where an insert into an FP-tree's leaf stores its entry, and which entries move with it.
//
// An insert beside the bitmap costs one flush and one fence. One into another line costs two of each, since the bitmap
// must not show an entry that is not durable. So an entry goes beside the bitmap while there is room. If there is none,
// it goes to its home line, and the entries beside the bitmap go to theirs. One fence is enough for all these lines,
// and the store of the bitmap that shows the new entry drops the old slots of the others, too. Then the next inserts
// find room beside the bitmap again.
//
// LB+-tree [LB+-tree] moves entries to one line only. Here they go to several, behind the same fence: that costs some
// flushes, and leaves four of five entries in their home lines, where a search waits for the medium once.
#pragma once

#include <pmlab/indexes/detail/slot_bits.hpp>
#include <pmlab/indexes/fp_tree/descriptor.hpp>
#include <pmlab/indexes/fp_tree/leaf.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::fp_tree {

struct insert_plan {
  std::size_t slot = 0;                                // slot of the new entry
  slot_set moves = 0;                                  // slots beside the bitmap whose entries move
  std::array<std::uint8_t, slots_beside_bitmap> to{};  // where each of them moves
  slot_set stored = 0;                                 // all slots that get an entry
};

// The other line with the most free slots. REQUIRES: one has a free slot.
[[nodiscard]] inline slot_set roomiest_line(slot_set free) noexcept {
  slot_set roomiest = 0;
  for (std::size_t line = 1; line < lines_per_leaf; ++line) {
    const slot_set here = free & slots_of_line(line);
    if (std::popcount(here) > std::popcount(roomiest)) roomiest = here;
  }
  return roomiest;
}

// A plan for `key` in leaf `in`, of which these slots are free. REQUIRES: there is one, and the leaf is locked.
[[nodiscard]] inline insert_plan plan_insert(const leaf& in, std::uint64_t key, slot_set free) noexcept {
  insert_plan plan;
  const auto take = [&](slot_set among) {
    const auto slot = static_cast<std::size_t>(std::countr_zero(among));
    plan.stored |= slot_set{1} << slot;
    free &= ~(slot_set{1} << slot);
    return slot;
  };
  if (const slot_set beside = free & slots_of_line(0); beside != 0) {
    plan.slot = take(beside);
    return plan;
  }
  const slot_set at_home = free & slots_of_line(home_line(key));
  plan.slot = take(at_home != 0 ? at_home : roomiest_line(free));
  const slot_set same_line = slots_of_line(line_of(plan.slot));
  const auto move = [&](std::size_t from, slot_set among) {
    plan.moves |= slot_set{1} << from;
    plan.to[from] = static_cast<std::uint8_t>(take(among));
  };
  for (std::size_t from = 0; from < slots_beside_bitmap; ++from) {
    const slot_set home = free & slots_of_line(home_line(in.slots[from].key.load(std::memory_order_relaxed)));
    if (home != 0) move(from, home);
  }
  // If all their home lines are full, one still makes room: in the line that is flushed in any case.
  if (plan.moves == 0 && (free & same_line) != 0) move(0, free & same_line);
  return plan;
}

}  // namespace pmlab::indexes::detail::fp_tree
