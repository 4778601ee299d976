// The nodes of a wB+-tree, and the searches among them: from the root down, in validated steps (T4: wb_tree.hpp).
#pragma once

#include <pmlab/indexes/detail/damaged_tree.hpp>
#include <pmlab/indexes/detail/node_tree.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/wb_tree/node.hpp>
#include <pmlab/indexes/wb_tree/slot_array.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace pmlab::indexes::detail::wb_tree {

// Thread safety: every operation from any number of threads, with a guard (`pin`).
template <media::medium Medium>
class searched_nodes : public node_tree<Medium, node> {
  using base = node_tree<Medium, node>;
  using node_pointer = media::pointer<node>;

  static constexpr std::uint64_t any_level = gone_level + 1;  // level of a root: its own word says it

 public:
  // As the base. Throws pmlab::error for a leftmost node of a level that is corrupt, too.
  searched_nodes(Medium& medium, std::atomic<std::uint64_t>& root) : base(medium, root) {
    this->begin(leftmost_leaf());
  }

  struct search_parts : base::search_parts {
    const std::atomic<std::uint64_t>* root;
  };
  [[nodiscard]] search_parts parts_for_searches() const noexcept {
    return {base::parts_for_searches(), &this->root_word()};
  }

  // Where a descent has arrived.
  struct search {
    node* at;                         // nullptr: there is no such level
    std::uint64_t level = any_level;  // that it must be on
    const node* gone = nullptr;       // the retired node that it met last
  };

  // One step of a search for the value of `key`; it prefetches the node that the next step reads. True: it is done.
  static bool step_to_value(const search_parts& parts, key_type key, search& s, std::optional<value_type>& found) {
    return step(parts, key, 0, s, [&](const node& leaf, slot_array order) {
      const auto slot = leaf.slot_of(order, key);
      found = slot ? std::optional(leaf.value_at(*slot)) : std::nullopt;
    });
  }

  // The node of `level` that `key` belongs to, read by `visit` as in `step`. No lock is held: meanwhile it may have
  // been split, or be gone. nullptr: there is no such level.
  template <class Visit>
  node* visit_node_of(key_type key, std::uint64_t level, Visit&& visit) const {
    search s{this->root()};
    while (!step(parts_for_searches(), key, level, s, visit)) {
    }
    return s.at;
  }
  [[nodiscard]] node* node_of(key_type key, std::uint64_t level) const {
    return visit_node_of(key, level, [](const node&, slot_array) {});
  }

  // The locked node of `level` that `key` belongs to. REQUIRES: there is such a level.
  class locked_node {
   public:
    locked_node(const searched_nodes& nodes, key_type key, std::uint64_t level) {
      for (;;) {
        node_ = nodes.node_of(key, level);
        lock_ = &nodes.lock_of(node_);
        lock_->lock();
        if (!node_->is_gone() && !node_->is_beyond(key)) return;
        lock_->unlock();
      }
    }
    locked_node(const locked_node&) = delete;
    locked_node& operator=(const locked_node&) = delete;
    ~locked_node() { lock_->unlock(); }

    [[nodiscard]] node& operator*() const noexcept { return *node_; }

   private:
    node* node_ = nullptr;
    sync::version_lock* lock_ = nullptr;
  };

 private:
  // Follows no pointer that cannot name a node of the next level. Throws pmlab::error: there is such a one.
  [[nodiscard]] node& leftmost_leaf() const {
    node_pointer at(this->root_word().load(std::memory_order_acquire));
    for (std::uint64_t expected = any_level;;) {
      const slot_array order =
          media::can_name(this->medium(), at) ? this->medium().resolve(at)->array() : slot_array(no_array);
      const std::uint64_t level = order.level();
      if (!order.is_valid() || level == gone_level || (expected != any_level && level != expected) ||
          (level != 0 && order.count() == 0))
        throw damaged_tree(node::tree_name, expected == any_level ? "its root" : "level " + std::to_string(expected));
      if (level == 0) return *this->medium().resolve(at);
      expected = level - 1;
      at = this->medium().resolve(at)->child_at(order[0]);
    }
  }
  static constexpr std::uint64_t no_array = ~std::uint64_t{0};

  // One validated step of a descent to the node of `target` level that `key` belongs to. True: it has arrived, and
  // visit(node, order) has read there, last of all in a state that was current and durable.
  template <class Visit>
  [[gnu::always_inline]] static bool step(const search_parts& parts, key_type key, std::uint64_t target, search& s,
                                          Visit&& visit) {
    for (;;) {
      node* const n = s.at;
      const sync::version_lock& lock = parts.lock_of(n);
      const std::uint64_t version = lock.read_begin();
      media::annotate_read(*parts.medium, *n);
      const slot_array order = n->array();
      const std::uint64_t level = order.level();
      const bool is_beyond = n->is_beyond(key);
      node_pointer next;
      key_type high = 0;
      if (is_beyond) {
        high = n->high_key.load(std::memory_order_acquire);
        next = n->sibling.load(std::memory_order_acquire);
      } else if (level == target) {
        visit(*n, order);
      } else {
        next = n->child_of(order, key);
      }
      if (!lock.read_validate(version)) [[unlikely]]
        continue;
      if (level != s.level) [[unlikely]] {
        if (level == gone_level) {
          if (s.gone == n) base::throw_damaged();  // T4: it was unlinked before the second time
          s = {parts.medium->resolve(node_pointer(parts.root->load(std::memory_order_acquire))), any_level, n};
          return false;
        }
        if (s.level != any_level) base::throw_damaged();
        s.level = level;
        if (level < target) {
          s.at = nullptr;
          return true;
        }
      }
      if (is_beyond) {
        s.at = base::sibling_at(*parts.medium, next, high);
      } else if (level == target) {
        return true;
      } else {
        if (!media::can_name(*parts.medium, next)) [[unlikely]]
          base::throw_damaged();
        s.at = parts.medium->resolve(next);
        --s.level;
      }
      media::prefetch(*parts.medium, *s.at);  // a binary search would wait for one line after the other
      return false;
    }
  }
};

}  // namespace pmlab::indexes::detail::wb_tree
