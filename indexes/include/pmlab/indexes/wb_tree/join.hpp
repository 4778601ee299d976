// Joining neighbours of a wB+-tree that became sparse. (T1 to T5: wb_tree.hpp.)
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/wb_tree/node.hpp>
#include <pmlab/indexes/wb_tree/searched_nodes.hpp>
#include <pmlab/indexes/wb_tree/slot_array.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/several_locks.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::wb_tree {

// Entries of two joined neighbours: four slots stay free, so that the next inserts do not split the node again.
inline constexpr std::size_t most_joined = capacity - 4;

// True if a leaf in which an erase left so many entries is to be joined with a neighbour. At most every second erase
// searches for one, and two neighbours under one parent keep nine entries or more.
[[nodiscard]] constexpr bool looks_for_a_neighbour(std::size_t entries) noexcept {
  return entries <= most_joined && entries % 2 == 0;
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
                        [](const node& top) {
                          const slot_array order = top.array();
                          return order.level() != 0 && order.count() == 1 ? top.child_at(order[0]) : node_pointer();
                        });
  }

 private:
  [[nodiscard]] static bool should_join(const node& left, const node& right) noexcept {
    const std::size_t in_left = left.array().count();
    const std::size_t in_right = right.array().count();
    return in_left + in_right <= (in_left == 0 || in_right == 0 ? capacity : most_joined);
  }

  // False: the node of `key` on this level has no neighbour under its parent with which it should be one.
  bool join_with_a_neighbour(key_type key, std::uint64_t level) {
    std::array<node_pointer, 3> family;
    node* const parent = nodes_.visit_node_of(key, level + 1, [&](const node& n, slot_array order) {
      const std::size_t own = n.count_up_to(order, key);  // a rank higher by one
      for (std::size_t i = 0; i < family.size(); ++i) {
        const std::size_t rank = own + i - 2;
        family[i] = rank < order.count() ? n.child_at(order[rank]) : node_pointer();
      }
    });
    if (parent == nullptr) return false;
    for (const node_pointer near : family)
      if (near) media::prefetch(medium_, medium_.resolve(near), sizeof(node));
    return join(*parent, family[0], family[1]) || join(*parent, family[1], family[2]);
  }

  // Makes one of two neighbours under `parent`, if they should be and still are such. Null: there is none.
  bool join(node& parent, node_pointer left_at, node_pointer right_at) {
    if (!media::can_name(medium_, left_at) || !media::can_name(medium_, right_at)) return false;
    node& left = *medium_.resolve(left_at);
    node& right = *medium_.resolve(right_at);
    media::annotate_read(medium_, left);
    media::annotate_read(medium_, right);
    if (!should_join(left, right)) return false;  // the usual answer, without a lock
    {
      const sync::several_locks held{&nodes_.lock_of(&parent), &nodes_.lock_of(&left), &nodes_.lock_of(&right)};
      if (parent.is_gone() || left.is_gone() || right.is_gone() || !should_join(left, right)) return false;
      const slot_array order = parent.array();
      const key_type low = left.high_key.load(std::memory_order_relaxed);  // low key of `right`
      const std::size_t rank = parent.count_up_to(order, low) - 1;
      const bool are_neighbours = left.sibling.load(std::memory_order_relaxed) == right_at && rank != 0 &&
                                  rank < order.count() && parent.child_at(order[rank]) == right_at &&
                                  parent.child_at(order[rank - 1]) == left_at;
      if (!are_neighbours) return false;
      const slot_array joined = copy_behind(medium_, left, right);  // (J1)
      publication change(medium_);
      media::publish_store(change, left.slots, joined.word());                                      // (J2)
      media::publish_store(change, left.sibling, right.sibling.load(std::memory_order_relaxed));    // (J3)
      media::publish_store(change, left.high_key, right.high_key.load(std::memory_order_relaxed));  // (J4)
      media::publish_store(change, parent.slots, order.without(rank).word());                       // (J5)
      // (J1) < (J2), (J3), (J4), (J5): one publication, so that no crash shows an entry in both nodes or in none, or a
      // parent that leads to a retired node (F4).
      node* const gone[] = {&right};
      nodes_.commit_unlinking(change, gone);
    }
    nodes_.retire(right);
    return true;
  }

  Medium& medium_;
  searched_nodes<Medium>& nodes_;
};

}  // namespace pmlab::indexes::detail::wb_tree
