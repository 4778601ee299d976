// The check of an FP-tree: its descriptors and search layer against the leaves in the medium.
#pragma once

#include <pmlab/indexes/fp_tree/descriptor.hpp>
#include <pmlab/indexes/fp_tree/group_table.hpp>
#include <pmlab/indexes/fp_tree/leaf.hpp>
#include <pmlab/indexes/fp_tree/leaf_store.hpp>
#include <pmlab/indexes/fp_tree/order.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace pmlab::indexes::detail::fp_tree {

// (D1 to D4, D6, D7: fp_tree.hpp.)
template <media::medium Medium, class SearchLayer>
[[nodiscard]] check_report check(const Medium& medium, const leaf_store<Medium>& store, const SearchLayer& layer) {
  check_report report;
  std::uint64_t leaves = 0;
  key_type low = 0;
  media::pointer<leaf> in_medium = medium.locate(store.leftmost().home);
  for (descriptor* d = &store.leftmost(); d != nullptr; d = d->next.load(std::memory_order_acquire)) {
    const leaf& l = *d->home;
    const auto where = [&] { return "leaf " + std::to_string(medium.locate(&l).word()); };
    const key_type last = d->last.load(std::memory_order_acquire);
    const slot_set used = d->read_marks().used();
    if (++leaves > store.leaves() || !d->is_linked()) {
      report.add("D1: " + where() + " is not linked, or twice");
      return report;
    }
    if (in_medium != medium.locate(&l)) report.add("D1: the medium's list does not lead to " + where());
    if (low_of(*d).load(std::memory_order_acquire) != low || last < low)
      report.add("D2: " + where() + " does not begin where the one before it ends");
    if (l.bitmap.load(std::memory_order_acquire) != store.bitmap_of(l, used))
      report.add("D3, L4: the bitmap of " + where());
    const gathered_entries entries(l, used, 0);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const key_type key = entries[i].key;
      if (key < low || key > last) report.add("D2: key " + std::to_string(key) + " is not in the range of " + where());
      for (std::size_t k = 0; k < i; ++k)
        if (entries[k].key == key) report.add("L1: key " + std::to_string(key) + " is present twice");
    }
    for_each_slot(used, [&](std::size_t i) {
      const key_type key = l.slots[i].key.load(std::memory_order_acquire);
      if ((d->read_marks().equal_to(fingerprint_of(key)) & (slot_set{1} << i)) == 0)
        report.add("D3: the fingerprint of key " + std::to_string(key));
    });
    report.entries += entries.size();
    in_medium = l.next.load(std::memory_order_acquire);
    const bool ends = d->next.load(std::memory_order_acquire) == nullptr;
    if (ends != (last == std::numeric_limits<key_type>::max()) || (ends && in_medium))
      report.add("D2: " + where() + " contradicts its range about being the last one");
    low = last + 1;
  }
  if (leaves + store.free_leaves() != store.leaves()) report.add("D6: a leaf is neither linked nor free");
  layer.check(report, [&](key_type key, std::uint64_t word) {
    const descriptor& d = *leaf_name(word).descriptor();
    if (!d.is_linked() || low_of(d).load(std::memory_order_acquire) != key)
      report.add("D4: the search layer leads to another leaf than that of key " + std::to_string(key));
    const leaf* const home = store.home_of(leaf_name(word));
    if (home != nullptr && home != d.home)
      report.add("D7: the search layer expects the leaf of key " + std::to_string(key) + " in another place");
  });
  return report;
}

}  // namespace pmlab::indexes::detail::fp_tree
