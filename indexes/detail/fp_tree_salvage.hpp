// What can be read of an FP-tree that does not open: its leaves, as far as their list leads, whatever their keys are.
#pragma once

#include <pmlab/indexes/detail/fp_tree_leaf.hpp>
#include <pmlab/indexes/detail/fp_tree_leaf_store.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace pmlab::indexes::detail::fp_tree {

// Calls function(key, value) for each entry of the tree whose groups begin at `root_word`; an entry that a split was
// moving comes twice (L3). Changes nothing. Throws pmlab::error where the list leads no further. Only leaves of groups
// are read, so that a wrong link brings up nothing that never was one.
template <class Medium, class Function>
void salvage(const Medium& medium, std::uint64_t root_word, Function&& function) {
  std::map<std::uint64_t, std::uint64_t> groups;  // where their leaves begin, and how many there are
  std::uint64_t leftmost = 0;
  for (media::pointer<leaf_group> p(root_word); p;) {
    if (!media::can_name(medium, p, group_bytes(true))) throw corrupt("its list of leaf groups leads nowhere");
    leaf_group* const group = medium.resolve(p);
    p = group->next.load(std::memory_order_acquire);
    leftmost = medium.locate(group->leaves()).word();
    const bool is_new = groups.emplace(leftmost, leaves_in(!p)).second;
    if (!is_new) throw corrupt("its list of leaf groups has no end");
  }
  std::uint64_t room = 0;
  for (const auto& [first, count] : groups) {
    if (!media::can_name(medium, media::pointer<leaf>(first), count * sizeof(leaf)))
      throw corrupt("a leaf group does not end in the pool");
    room += count;
  }
  for (media::pointer<leaf> p(leftmost); p;) {
    const auto after = groups.upper_bound(p.word());
    if (after == groups.begin()) throw corrupt("its list of leaves leads nowhere");
    const auto& [first, count] = *std::prev(after);
    if ((p.word() - first) % sizeof(leaf) != 0 || (p.word() - first) / sizeof(leaf) >= count)
      throw corrupt("its list of leaves leads nowhere");
    if (room-- == 0) throw corrupt("its list of leaves has no end");
    const leaf& l = *medium.resolve(p);
    for_each_slot(static_cast<slot_set>(l.bitmap.load(std::memory_order_acquire)) & all_slots, [&](std::size_t i) {
      function(l.slots[i].key.load(std::memory_order_acquire), l.slots[i].value.load(std::memory_order_acquire));
    });
    p = l.next.load(std::memory_order_acquire);
  }
}

}  // namespace pmlab::indexes::detail::fp_tree
