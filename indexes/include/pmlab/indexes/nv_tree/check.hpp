// The check of an NV-Tree: its descriptors and inner nodes against the leaves in the medium.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/nv_tree/descriptor.hpp>
#include <pmlab/indexes/nv_tree/gathered.hpp>
#include <pmlab/indexes/nv_tree/inner_nodes.hpp>
#include <pmlab/indexes/nv_tree/leaf.hpp>
#include <pmlab/indexes/nv_tree/leaf_store.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

namespace pmlab::indexes::detail::nv_tree {

// `head`: the descriptor before the first leaf's. (D1 to D4, D7: nv_tree.hpp.)
template <media::medium Medium>
[[nodiscard]] check_report check(const Medium& medium, const leaf_store<Medium>& store, const descriptor& head,
                                 const inner_nodes& inner) {
  check_report report;
  std::uint64_t leaves = 0;
  const descriptor* before = &head;
  for (const descriptor* d = next_of(head); d != nullptr; before = d, d = next_of(*d)) {
    const leaf& l = d->entries();
    const auto where = [&] { return "leaf " + std::to_string(medium.locate(&l).word()); };
    const key_type last = d->last.load(std::memory_order_acquire);
    if (++leaves > store.leaves() || !d->is_linked()) {
      report.add("D1: " + where() + " is not linked, or twice");
      return report;
    }
    const read_header link(before->entries(), medium.locate(&before->entries()));
    if (!link.is_whole) report.add("L4: the link to " + where());
    if (link.next != medium.locate(&l)) report.add("D1: the medium's list does not lead to " + where());
    if (d->low != before->last.load(std::memory_order_acquire) + 1 || last < d->low ||
        l.low.load(std::memory_order_acquire) != d->low || region_of(last) != region_of(d->low))
      report.add("D2, L3: " + where() + " does not begin where the one before it ends");
    gathered_entries here;
    here.add(*d, 0);
    const auto all = here.in_order();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].key < d->low || all[i].key > last)
        report.add("D2: key " + std::to_string(all[i].key) + " is not in the range of " + where());
      if (i > 0 && all[i].key == all[i - 1].key)
        report.add("L2: key " + std::to_string(all[i].key) + " is present twice");
    }
    const std::uint64_t appended = d->appended.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < slots_of_leaf<Medium>; ++i) {
      const slot_word word = l[i].word.load(std::memory_order_acquire);
      const bool is_live = word.is(states::live);
      if ((word.state() == 0) != (i >= appended)) report.add("L1, D3: the slots of " + where());
      if (is_live != ((d->live() >> i & 1) != 0) || (is_live && (d->candidates(word.key(d->low)) >> i & 1) == 0))
        report.add("D3: the fingerprint of slot " + std::to_string(i) + " of " + where());
    }
    report.entries += all.size();
    const bool ends = next_of(*d) == nullptr;
    if (ends != (last == std::numeric_limits<key_type>::max()) || (ends && read_header(l, medium.locate(&l)).next))
      report.add("D2: " + where() + " contradicts its range about being the last one");
  }
  if (leaves + store.free_leaves() + store.waiting_leaves() != store.leaves())
    report.add("D7: a leaf is neither in the tree nor free");
  inner.check(report, [&](key_type key, std::uint64_t word) {
    const descriptor& d = *reinterpret_cast<const descriptor*>(word);
    if (!d.is_linked() || d.low != key)
      report.add("D4: the inner nodes lead to another leaf than that of key " + std::to_string(key));
  });
  return report;
}

}  // namespace pmlab::indexes::detail::nv_tree
