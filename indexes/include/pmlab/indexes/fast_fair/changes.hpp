// The changes of locked nodes on any level: what FAST-FAIR does, whatever the locks are. (T2: fast_fair.hpp.)
#pragma once

#include <pmlab/indexes/fast_fair/node.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace pmlab::indexes::detail::fast_fair {

// A node that may be missing in its parent: the sibling behind a link that a writer walked over.
struct unannounced {
  key_type separator = 0;
  media::pointer<node> child{};
  std::uint64_t parent_level = 0;  // 0: none
};

// The key by which inner nodes are searched: none of their separators is greatest_key.
[[nodiscard]] constexpr key_type routing_key(key_type key) noexcept { return key == greatest_key ? key - 1 : key; }

// The base of a tree: of fast_fair, and of pod::shared_tree for several hosts. Each change is durable on return, and
// after each of its stores the node is valid (N1, N2: fast_fair/node.hpp).
template <media::medium Medium>
class node_changes {
  using publication = typename Medium::publication;

 protected:
  explicit node_changes(Medium& medium) noexcept : medium_(medium) {}

  // Moves the upper entries of a locked node, all of whose slots are entries, to a new sibling. `made_for` is the key
  // whose insertion requires it. False: no space; nothing has changed.
  bool split(node& n, key_type made_for, unannounced& result) {
    publication change(medium_);
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
    medium_.copy(right, &filled, sizeof(node));  // (S0)
    medium_.fence();                             // (S1)

    const media::pointer<node> made = medium_.locate(right);
    media::publish_store(change, n.sibling, made);        // (S2)
    media::publish_store(change, n.high_key, separator);  // (S3)
    change.commit();
    // (S0) < (S1) < (S2), (S3): the sibling is complete before the list leads to it; allocation, link and high key
    // become visible atomically, so that no crash leaks the node or shows an entry in both (F3, F4). The parent is
    // updated later (T2).
    result = {separator, made, filled.level.load(std::memory_order_relaxed) + 1};
    return true;
  }

  // Adds `link.child` to its locked parent, if it is not there yet. False: the parent was split for it: the caller
  // tells the next level of `split_off`, and begins again. Without space the child stays as it is.
  bool add_child(node& parent, const unannounced& link, unannounced& split_off) {
    if (parent.first_child.load(std::memory_order_relaxed) == link.child) return true;
    if (parent.slot_of(link.separator)) return true;
    if (insert_into(medium_, parent, link.separator, link.child.word())) return true;
    return !split(parent, link.separator, split_off);
  }

  // Removes the key of a locked leaf. erased or absent; durable on return.
  outcome remove(node& leaf, key_type key) {
    if (key == greatest_key) {
      if (leaf.greatest_present.load(std::memory_order_relaxed) == 0) return outcome::absent;
      leaf.greatest_present.store(0, std::memory_order_release);  // (X1) commit
      media::persist(medium_, leaf.greatest_present);             // (X2)
      // (X1) < (X2) < unlock: a reader that misses the key answers only when its removal is durable.
      return outcome::erased;
    }
    const auto slot = leaf.slot_of(key);
    if (!slot) return outcome::absent;
    erase_from(medium_, leaf, *slot);
    return outcome::erased;
  }

  // Adds greatest_key, which is not there, to the locked last leaf. Durable on return.
  outcome put_greatest(node& leaf, value_type value) {
    // (Y1) < (Y2): one line, so no crash image holds the key without its value.
    leaf.greatest_value.store(value, std::memory_order_release);  // (Y1)
    leaf.greatest_present.store(1, std::memory_order_release);    // (Y2) commit
    media::persist(medium_, leaf.greatest_present);               // (Y3)
    // (Y2) < (Y3) < unlock: the value that a reader returns is durable.
    return outcome::inserted;
  }

  // Adds (key, value), which is not there, to a locked leaf. inserted; full: no space for a split; nothing: the leaf
  // was split for it: the caller tells the parent, and begins again.
  std::optional<outcome> add(node& leaf, key_type key, value_type value, unannounced& split_off) {
    if (key == greatest_key) return put_greatest(leaf, value);
    if (insert_into(medium_, leaf, key, value)) return outcome::inserted;
    if (!split(leaf, key, split_off)) return outcome::full;
    return std::nullopt;
  }

  Medium& medium_;
};

}  // namespace pmlab::indexes::detail::fast_fair
