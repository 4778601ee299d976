// The lines of chosen slots of an FP-tree's leaf are written back.
#pragma once

#include <pmlab/indexes/fp_tree/leaf.hpp>
#include <pmlab/media/medium.hpp>

#include <bit>
#include <cstddef>

namespace pmlab::indexes::detail::fp_tree {

// Begins to write back the lines of these slots, each once, but not the line of the bitmap: that is flushed when the
// bitmap is stored, and no sooner. The caller fences. True if there is something to fence.
template <media::medium Medium>
bool flush_slots(Medium& medium, const leaf& of, slot_set slots) noexcept {
  for (std::size_t line = 1; line < lines_per_leaf; ++line)
    if (const slot_set here = slots & slots_of_line(line); here != 0)
      media::flush(medium, of.slots[static_cast<std::size_t>(std::countr_zero(here))]);  // (K1)
  // (K1) before the caller's fence: only that makes the lines durable.
  return (slots & ~slots_of_line(0)) != 0;
}

}  // namespace pmlab::indexes::detail::fp_tree
