// Joins two neighbours of a FAST-FAIR tree: selects them, and moves the entries of both into one node.
#pragma once

#include <pmlab/indexes/fast_fair/node.hpp>
#include <pmlab/indexes/fast_fair/searched_nodes.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/several_locks.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::fast_fair {

// Entries of two joined neighbours: two slots stay free, so that the next inserts do not split the node again.
// just joined.
inline constexpr std::size_t most_joined = capacity - 2;

// A leaf searches for a neighbour to join with when an erase leaves so many entries, and a multiple of join_step. So at
// most every third erase searches, and two neighbours under one parent keep most_joined + 1 - 2 * (join_step - 1) = 23
// entries: at 11.5 a leaf no more than 2.1 times the leaves of a `load` (24 entries each). Histories that are not
// adversarial stay well below.
inline constexpr std::size_t join_from = 24;
inline constexpr std::size_t join_step = 3;

// Entries in the slots of a node.
[[nodiscard]] inline std::size_t entries_in(node& n) noexcept {
  std::size_t entries = 0;
  for (std::size_t i = 0; i < capacity; ++i) entries += static_cast<std::size_t>(!n.is_free(i));
  return entries;
}

// True if this locked leaf, in which a key was just erased, should search for a neighbour.
[[nodiscard]] inline bool looks_for_a_neighbour(node& leaf) noexcept {
  const std::size_t entries = entries_in(leaf);
  return entries <= join_from && entries % join_step == 0;
}

// The slot after the last entry: it and all that follow are beyond the high key.
[[nodiscard]] inline std::size_t end_of_entries(node& n) noexcept {
  std::size_t end = capacity;
  while (end > 0 && n.is_free(end - 1)) --end;
  return end;
}

// Slots that the entries of `right` need behind the left neighbour's. In an inner node the separator between the
// two leads to the first child of `right`.
[[nodiscard]] inline std::size_t slots_for(node& right) noexcept {
  return entries_in(right) + static_cast<std::size_t>(!right.is_leaf());
}

// True if these neighbours should be one node.
[[nodiscard]] inline bool should_join(node& left, node& right) noexcept {
  const std::size_t in_left = entries_in(left);
  const std::size_t in_right = entries_in(right);
  const std::size_t most = in_left == 0 || in_right == 0 ? capacity : most_joined;
  return in_left + slots_for(right) <= most;
}

// Copies the entries of `right` behind those of `left`; both are locked, and there is room from `end` on, the end of
// the entries of `left`. They are beyond its high key still, so no reader and no crash sees them before the high key is
// that of `right`. Durable on return.
template <media::medium Medium>
void copy_behind(Medium& medium, node& left, std::size_t end, node& right) noexcept {
  slot_writer writer(left, end);
  writer.put_right(left, right);  // (G1)
  writer.leave_the_rest_free();   // (G2) entries that a split left there would be visible under the new high key
  for (std::size_t line = end / entries_per_line; line < lines_per_node; ++line)
    media::flush(medium, left.lines[line]);  // (G3)
  medium.fence();                            // (G4)
  // (G1), (G2) < (G3) < (G4) < every store that follows the return.
}

// The children of an inner node around one of them.
struct family {
  media::pointer<node> before{};  // the left neighbour's left neighbour
  media::pointer<node> left{};
  media::pointer<node> own{};
  media::pointer<node> right{};
};

// The children of `parent` around the one that has `key`; null: there is none under this parent. REQUIRES: a lock, or
// validation of the result before it is used.
[[nodiscard]] inline family family_of(node& parent, std::uint64_t key) noexcept {
  family result;
  result.own = parent.first_child.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < capacity; ++i) {
    if (parent.is_free(i)) continue;
    const media::pointer<node> child(parent.value_at(i));
    if (parent.key_at(i) > key) {
      result.right = child;
      break;
    }
    result.before = result.left;
    result.left = result.own;
    result.own = child;
  }
  return result;
}

// Makes one node of two under one parent, on any level.
template <media::medium Medium>
class joiner {
  using node_pointer = media::pointer<node>;
  using publication = typename Medium::publication;

 public:
  explicit joiner(searched_nodes<Medium>& nodes) noexcept : medium_(nodes.medium()), nodes_(nodes) {}

  // Joins the leaf of `key` with a neighbour if they fit into one; if a parent lost a child, continues with the parent.
  void join_around(key_type key) {
    nodes_.join_upwards([&](std::uint64_t level) { return join_with_a_neighbour(key, level); },
                        [this](node& top) { return only_child_of(top); });
  }

 private:
  // The only child of a locked root; null: it has more, or it is a leaf.
  [[nodiscard]] node_pointer only_child_of(node& top) const {
    if (top.is_leaf() || top.sibling.load(std::memory_order_relaxed) || entries_in(top) != 0) return {};
    const node_pointer child = top.first_child.load(std::memory_order_relaxed);
    // A child with a sibling is soon to be announced.
    return medium_.resolve(child)->sibling.load(std::memory_order_acquire) ? node_pointer() : child;
  }

  // False: the node of `key` on this level has no neighbour under its parent with which it should be one.
  bool join_with_a_neighbour(key_type key, std::uint64_t level) {
    unannounced ignored;
    node* const parent = nodes_.node_of(key, level + 1, ignored);
    if (parent == nullptr) return false;
    family around;
    for (bool valid = false; !valid;) {
      const sync::version_lock& lock = nodes_.lock_of(parent);
      const std::uint64_t version = lock.read_begin();
      around = family_of(*parent, routing_key(key));
      valid = lock.read_validate(version);
    }
    for (const node_pointer near : {around.left, around.own, around.right})
      if (near) media::prefetch(medium_, medium_.resolve(near), sizeof(node));
    return join(*parent, around.before, around.left, around.own) ||
           join(*parent, around.left, around.own, around.right);
  }

  // Makes one of two neighbours under `parent`, if they should be and still are such; `before` is the left neighbour of
  // `left_at`. Null: there is none under this parent.
  bool join(node& parent, node_pointer before_at, node_pointer left_at, node_pointer right_at) {
    if (!media::can_name(medium_, left_at) || !media::can_name(medium_, right_at)) return false;
    if (before_at && !media::can_name(medium_, before_at)) return false;
    node& left = *medium_.resolve(left_at);
    node& right = *medium_.resolve(right_at);
    node* const before = before_at ? medium_.resolve(before_at) : nullptr;
    media::annotate_read(medium_, left);
    media::annotate_read(medium_, right);
    if (!should_join(left, right)) return false;  // the usual answer, without a lock
    bool left_goes = false;
    {
      const sync::several_locks held{&nodes_.lock_of(&parent), &nodes_.lock_of(&left), &nodes_.lock_of(&right),
                                     before == nullptr ? nullptr : &nodes_.lock_of(before)};
      if (!are_neighbours(parent, left, right) || !should_join(left, right)) return false;
      const std::size_t end = end_of_entries(left);
      if (end + slots_for(right) <= capacity) {
        join_in_place(parent, left, end, right);
      } else {
        if (before == nullptr || before->is_gone() || before->sibling.load(std::memory_order_relaxed) != left_at ||
            parent.first_child.load(std::memory_order_relaxed) == left_at)
          return false;
        if (!join_in_a_new_node(parent, *before, left, right)) return false;
        left_goes = true;
      }
    }
    if (left_goes) nodes_.retire(left);
    nodes_.retire(right);
    return true;
  }

  // True if these locked nodes are linked, and the parent knows `right` behind another child, and `left`.
  [[nodiscard]] bool are_neighbours(node& parent, node& left, node& right) const {
    if (parent.is_gone() || left.is_gone() || right.is_gone()) return false;
    const node_pointer right_at = medium_.locate(&right);
    if (left.sibling.load(std::memory_order_relaxed) != right_at) return false;
    const key_type separator = left.high_key.load(std::memory_order_relaxed);
    if (separator == 0 || separator >= parent.high_key.load(std::memory_order_relaxed)) return false;
    const auto slot = parent.slot_of(separator);
    return slot && node_pointer(parent.value_at(*slot)) == right_at &&
           parent.child_of(separator - 1) == medium_.locate(&left);
  }

  // The parent forgets its locked child `right`, the right neighbour of `left`.
  void forget(node& parent, const node& left) {
    erase_from(medium_, parent,
               *parent.slot_of(left.high_key.load(std::memory_order_relaxed)));  // (J1)
    // (J1) < (J2), (J4): a parent never leads to a retired node. A crash in between leaves a child that its parent does
    // not know (T2).
  }

  void join_in_place(node& parent, node& left, std::size_t end, node& right) {
    copy_behind(medium_, left, end, right);  // (J0) durable
    forget(parent, left);
    publication change(medium_);
    media::publish_store(change, left.sibling, right.sibling.load(std::memory_order_relaxed));    // (J2)
    media::publish_store(change, left.high_key, right.high_key.load(std::memory_order_relaxed));  // (J3)
    if (!right.sibling.load(std::memory_order_relaxed)) {
      const std::uint64_t present = right.greatest_present.load(std::memory_order_relaxed);
      const value_type value = right.greatest_value.load(std::memory_order_relaxed);
      media::publish_store(change, left.greatest_present, present);  // (J6)
      media::publish_store(change, left.greatest_value, value);      // (J7)
    }
    // (J0) < (J2), (J3), (J6), (J7): one publication, so that no crash shows an entry in both nodes or in none (F4).
    node* const gone[] = {&right};
    nodes_.commit_unlinking(change, gone);
  }

  // A new node with the entries of both replaces `left`, which is no first child. False: no space, and nothing has
  // changed.
  bool join_in_a_new_node(node& parent, node& before, node& left, node& right) {
    publication change(medium_);
    auto* const joined = media::create<node>(change);
    if (joined == nullptr) return false;
    joined->level.store(left.level.load(std::memory_order_relaxed), std::memory_order_relaxed);
    joined->first_child.store(left.first_child.load(std::memory_order_relaxed), std::memory_order_relaxed);
    take_place_after(*joined, right);
    slot_writer writer(*joined, 0);
    writer.put_entries(left);
    writer.put_right(left, right);
    media::persist(medium_, *joined);  // (J8)
    forget(parent, left);
    const std::size_t slot = parent.count_up_to(left.high_key.load(std::memory_order_relaxed) - 1) - 1;
    const node_pointer made = medium_.locate(joined);
    media::publish_store(change, before.sibling, made);  // (J4)
    change.store(parent.value(slot), made.word());       // (J5)
    // (J8) < (J4), (J5): as (S1) < (S2), (S3); one publication, so that nothing leads to `left` any more (T3).
    node* const gone[] = {&left, &right};
    nodes_.commit_unlinking(change, gone);
    return true;
  }

  Medium& medium_;
  searched_nodes<Medium>& nodes_;
};

}  // namespace pmlab::indexes::detail::fast_fair
