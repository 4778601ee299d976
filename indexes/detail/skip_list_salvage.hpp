// What can be read of a skip list that does not open: its list, as far as the links lead, whatever its keys are; and
// where a link is lost, the nodes of its slabs.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/skip_list_node.hpp>
#include <pmlab/indexes/detail/skip_list_recovery.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstdint>

namespace pmlab::indexes::detail::skip_list {

inline constexpr std::uint64_t level_of_entries = 1;

// The node that a link leads to. nullptr: to none, or to one that is no entry.
template <class Medium>
[[nodiscard]] const node* entry_at(const Medium& medium, link_word link) noexcept {
  const media::pointer<node> p(target_of(link));
  if (!media::can_name(medium, p)) return nullptr;
  const node* const n = medium.resolve(p);
  return n->level.load(std::memory_order_acquire) == level_of_entries ? n : nullptr;
}

template <class Medium, class Function>
void follow_links(const Medium& medium, link_word link, Function&& function) {
  for (std::uint64_t room = medium.used().capacity_bytes / sizeof(node); target_of(link) != 0; --room) {
    const node* const n = entry_at(medium, link);
    if (n == nullptr) throw corrupt("a link leads to no entry");
    if (room == 0) throw corrupt("its list has no end");
    link = n->next.load(std::memory_order_acquire);
    if (!is_marked(link)) function(n->key.load(std::memory_order_acquire), n->value.load(std::memory_order_acquire));
  }
}

// Calls function(key, value) for each entry of the list below the root, a root_object, at `root_word`. If a link is
// lost, then for each node of a slab that looks like an entry: most of them again; and what an insert wrote that never
// was answered, which only a list without a gap can tell from an entry. Changes nothing. Throws pmlab::error at the
// end if a link was lost.
template <class Root, class Slab, class Medium, class Function>
void salvage(const Medium& medium, std::uint64_t root_word, Function&& function) {
  const media::pointer<Root> at(root_word);
  if (!media::can_name(medium, at)) throw corrupt("its root");
  const Root& root = *medium.resolve(at);
  try {
    follow_links(medium, root.heads[0].next.load(std::memory_order_acquire), function);
  } catch (const error&) {
    for (const Slab* const s : slabs_from<Slab>(medium, root.slabs.load(std::memory_order_acquire)))
      for (const node& n : s->nodes) {
        const link_word next = n.next.load(std::memory_order_acquire);
        const bool leads_on = target_of(next) == 0 || entry_at(medium, next) != nullptr;
        if (n.level.load(std::memory_order_acquire) == level_of_entries && !is_marked(next) && leads_on)
          function(n.key.load(std::memory_order_acquire), n.value.load(std::memory_order_acquire));
      }
    throw;
  }
}

}  // namespace pmlab::indexes::detail::skip_list
