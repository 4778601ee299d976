// The nodes of a FAST-FAIR tree, and the searches among them: from the root down and to the right, in validated steps.
// (T1 to T5: fast_fair.hpp.)
#pragma once

#include <pmlab/indexes/detail/damaged_tree.hpp>
#include <pmlab/indexes/detail/node_tree.hpp>
#include <pmlab/indexes/fast_fair/changes.hpp>
#include <pmlab/indexes/fast_fair/leaf.hpp>
#include <pmlab/indexes/fast_fair/node.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

namespace pmlab::indexes::detail::fast_fair {

// Thread safety: every operation from any number of threads, with a guard (`pin`).
template <media::medium Medium>
class searched_nodes : public node_tree<Medium, node> {
  using base = node_tree<Medium, node>;
  using node_pointer = media::pointer<node>;

 public:
  using search_parts = typename base::search_parts;

  // As the base. Throws pmlab::error for a leftmost node of a level that is corrupt, too.
  searched_nodes(Medium& medium, std::atomic<std::uint64_t>& root) : base(medium, root) {
    this->begin(leftmost_leaf());
  }

  [[nodiscard]] std::uint64_t levels() const noexcept {
    return this->root()->level.load(std::memory_order_acquire) + 1;
  }

  [[nodiscard]] node* leftmost_of(std::uint64_t level) const {
    node* n = this->root();
    for (std::uint8_t descents = 0; n->level.load(std::memory_order_acquire) > level;)
      n = child_at(this->medium(), n->first_child.load(std::memory_order_acquire), descents);
    return n;
  }

  // One validated step of a search: `n` moves to the next node, or (true) `found` is the leaf's value of `key`.
  static bool step_towards(const search_parts& parts, key_type key, node*& n, std::optional<value_type>& found,
                           std::uint8_t& descents) {
    for (;;) {
      const sync::version_lock& lock = parts.lock_of(n);
      const std::uint64_t version = lock.read_begin();
      media::annotate_read(*parts.medium, *n);
      node_pointer next;
      bool is_leaf = false;
      bool is_beyond = false;
      key_type high = 0;
      found.reset();
      if (n->is_beyond(key)) {
        is_beyond = true;
        high = n->high_key.load(std::memory_order_acquire);
        next = n->sibling.load(std::memory_order_acquire);
      } else if (n->is_leaf()) {
        is_leaf = true;
        if (auto* const stored = stored_value(*n, key)) found = stored->load(std::memory_order_acquire);
      } else {
        next = n->child_of(routing_key(key));
      }
      if (!lock.read_validate(version)) [[unlikely]]
        continue;
      if (is_leaf) return true;
      n = is_beyond ? base::sibling_at(*parts.medium, next, high) : child_at(*parts.medium, next, descents);
      return false;
    }
  }

  // The node of `level` that holds `key`'s range, without a lock: by the time it is locked, it may be one further left,
  // or gone. nullptr: there is no such level.
  [[nodiscard]] node* node_of(key_type key, std::uint64_t level, unannounced& seen) const {
    node* n = this->root();
    if (n->level.load(std::memory_order_acquire) < level) return nullptr;
    for (std::uint8_t descents = 0;;) {
      const sync::version_lock& lock = this->lock_of(n);
      const std::uint64_t version = lock.read_begin();
      media::annotate_read(this->medium(), *n);
      const std::uint64_t at_level = n->level.load(std::memory_order_acquire);
      const bool beyond = n->is_beyond(key);
      if (!beyond && at_level == level) return n;
      const node_pointer sibling = n->sibling.load(std::memory_order_acquire);
      const key_type separator = n->high_key.load(std::memory_order_acquire);
      const node_pointer next = beyond ? sibling : n->child_of(routing_key(key));
      if (!lock.read_validate(version)) [[unlikely]]
        continue;
      if (beyond) seen = {separator, sibling, at_level + 1};
      n = beyond ? base::sibling_at(this->medium(), next, separator) : child_at(this->medium(), next, descents);
      // Its caller locks it, and no load overtakes a lock: therefore all of its lines are prefetched now.
      if (at_level == level + (beyond ? 0 : 1)) media::prefetch(this->medium(), *n);
    }
  }

  [[nodiscard]] node& leaf_of(key_type key) const {
    unannounced ignored;
    return *node_of(key, 0, ignored);
  }

  // A locked node of `level`, or none if there is no such level. Moves right while `key` belongs further right, always
  // holding one lock only; begins again where a node is gone (T4).
  class locked_node {
   public:
    locked_node(const searched_nodes& nodes, key_type key, std::uint64_t level) {
      node_ = nodes.node_of(key, level, seen_);
      while (node_ != nullptr) {
        lock_ = &nodes.lock_of(node_);
        lock_->lock();
        if (node_->is_gone()) {
          unlock();
          const node* const before = node_;
          node_ = nodes.node_of(key, level, seen_);
          if (node_ == before) base::throw_damaged();  // T3: a retired node is found at most once
          continue;
        }
        if (!node_->is_beyond(key)) return;
        const node_pointer next = node_->sibling.load(std::memory_order_relaxed);
        seen_ = {node_->high_key.load(std::memory_order_relaxed), next, level + 1};
        unlock();
        node_ = base::sibling_at(nodes.medium(), next, seen_.separator);
      }
    }
    locked_node(const locked_node&) = delete;
    locked_node& operator=(const locked_node&) = delete;
    ~locked_node() { unlock(); }

    void unlock() noexcept {
      if (lock_ != nullptr) lock_->unlock();
      lock_ = nullptr;
    }
    [[nodiscard]] explicit operator bool() const noexcept { return node_ != nullptr; }
    [[nodiscard]] node& operator*() const noexcept { return *node_; }
    // A link that the way here led over.
    [[nodiscard]] const unannounced& seen() const noexcept { return seen_; }

   private:
    node* node_ = nullptr;
    sync::version_lock* lock_ = nullptr;
    unannounced seen_;
  };

 private:
  // Follows no pointer that cannot name a node of the next level. Throws pmlab::error: there is such a one.
  [[nodiscard]] node& leftmost_leaf() const {
    node_pointer at(this->root_word().load(std::memory_order_acquire));
    for (std::uint64_t below = most_levels;;) {
      const bool there = media::can_name(this->medium(), at);
      const std::uint64_t level = there ? this->medium().resolve(at)->level.load(std::memory_order_acquire) : 0;
      const bool is_root = below == most_levels;
      if (!there || level >= below || (!is_root && level + 1 != below) || this->medium().resolve(at)->is_gone())
        throw damaged_tree(node::tree_name, is_root ? "its root" : "level " + std::to_string(below - 1));
      if (level == 0) return *this->medium().resolve(at);
      below = level;
      at = this->medium().resolve(at)->first_child.load(std::memory_order_acquire);
    }
  }

  [[nodiscard]] static node* child_at(const Medium& medium, node_pointer link, std::uint8_t& descents) {
    if (!media::can_name(medium, link) || ++descents > most_levels) [[unlikely]]
      base::throw_damaged();
    return medium.resolve(link);
  }
};

}  // namespace pmlab::indexes::detail::fast_fair
