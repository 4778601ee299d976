// The split of a node, on any level, and what a writer keeps of it for the parent. (T2: fast_fair.hpp.)
#pragma once

#include <pmlab/indexes/fast_fair/node.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::fast_fair {

// A node that may be missing in its parent: the sibling behind a link that a writer walked over.
struct unannounced {
  key_type separator = 0;
  media::pointer<node> child{};
  std::uint64_t parent_level = 0;  // 0: none
};

// The key by which inner nodes are searched: none of their separators is greatest_key.
[[nodiscard]] constexpr key_type routing_key(key_type key) noexcept { return key == greatest_key ? key - 1 : key; }

// Moves the upper entries of a locked node, all of whose slots are entries, to a new sibling. `made_for` is the key
// whose insertion requires it. False: no space; nothing has changed.
template <media::medium Medium>
bool split(Medium& medium, node& n, key_type made_for, unannounced& result) {
  typename Medium::publication change(medium);
  auto* const right = static_cast<node*>(change.allocate(sizeof(node), alignof(node)));
  if (right == nullptr) return false;
  const bool is_leaf = n.is_leaf();
  const media::pointer<node> next = n.sibling.load(std::memory_order_relaxed);
  // Ascending keys fill the last leaf: the left node then stays full.
  constexpr std::size_t last = capacity - 1;
  const bool appending = !next && made_for > n.key_at(last);
  const std::size_t middle = appending ? last : capacity / 2;
  const key_type separator = n.key_at(middle);

  // Filled here, and then copied around the caches: the lines of the new node need not be read from the medium first.
  node filled;
  filled.level.store(n.level.load(std::memory_order_relaxed), std::memory_order_relaxed);
  take_place_after(filled, n);
  // In an inner node the separator moves up and its child begins the new node.
  if (!is_leaf) filled.first_child.store(media::pointer<node>(n.value_at(middle)), std::memory_order_relaxed);
  // A hole before each entry: a key inserted between two of them shifts within its line, and the split writes all of
  // the node anyway. If keys ascend, none falls between.
  const std::size_t slots_each = appending ? 1 : 2;
  slot_writer writer(filled, 0);
  for (std::size_t from = is_leaf ? middle : middle + 1; from <= last; ++from)
    for (std::size_t copy = 0; copy < slots_each; ++copy) writer.put(n.key_at(from), n.value_at(from));
  medium.copy(right, &filled, sizeof(node));  // (S0)
  medium.fence();                             // (S1)

  const media::pointer<node> made = medium.locate(right);
  media::publish_store(change, n.sibling, made);        // (S2)
  media::publish_store(change, n.high_key, separator);  // (S3)
  change.commit();
  // (S0) < (S1) < (S2), (S3): the sibling is complete before the list leads to it; allocation, link and high key
  // become visible atomically, so that no crash leaks the node or shows an entry in both (F3, F4). The parent is
  // updated later (T2).
  result = {separator, made, filled.level.load(std::memory_order_relaxed) + 1};
  return true;
}

// Adds `link.child` to its locked parent, if it is not there yet. False: the parent was split for it, so that the caller
// tells the next level of `split_off`, and begins again. Without space the child stays as it is.
template <media::medium Medium>
bool add_child(Medium& medium, node& parent, const unannounced& link, unannounced& split_off) {
  if (parent.first_child.load(std::memory_order_relaxed) == link.child) return true;
  if (parent.slot_of(link.separator)) return true;
  if (insert_into(medium, parent, link.separator, link.child.word())) return true;
  return !split(medium, parent, link.separator, split_off);
}

// Puts a new root of `level` above the one that `root` leads to, which only the caller changes. It knows its first
// child alone. False: no space.
template <media::medium Medium>
bool put_root_above(Medium& medium, std::atomic<std::uint64_t>& root, std::uint64_t level) {
  typename Medium::publication change(medium);
  auto* const made = media::create<node>(change);
  if (made == nullptr) return false;
  made->level.store(level, std::memory_order_relaxed);
  made->first_child.store(media::pointer<node>(root.load(std::memory_order_relaxed)), std::memory_order_relaxed);
  media::persist(medium, *made);                   // (R1)
  change.store(root, medium.locate(made).word());  // (R2)
  // (R1) < (R2): the root never names memory that is not durable.
  change.commit();
  return true;
}

}  // namespace pmlab::indexes::detail::fast_fair
