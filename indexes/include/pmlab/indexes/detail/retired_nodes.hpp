// The retired nodes of a tree whose nodes are all in the medium, which readers may still be in.
//
// A queue in the medium: the leftmost leaf, which is never retired, leads to the oldest one, `next_retired` to the
// next. A node enters it in the publication that unlinks it, and leaves it in the one that releases its block.
//
// Invariants:
//   Q1  A block of the tree is in a level, in this queue, or free; after every crash, too. So nothing leaks.
//   Q2  A node in the queue is `gone`; one in a level is not.
//   Q3  A block is released when no guard is left that began before its node was unlinked (sync::epochs), or by the
//       next open, which has no readers yet.
#pragma once

#include <pmlab/indexes/detail/damaged_tree.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/media/pointer.hpp>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_set>
#include <vector>

namespace pmlab::indexes::detail {

// A Node has a word `next_retired`, which is null in a new one; `publish_gone(change)`, which marks it for ever;
// `is_gone()`; and the name of its tree for messages, `tree_name`.
//
// Thread safety: every operation from any number of threads, but for `begin`.
template <media::medium Medium, class Node>
class retired_nodes {
  using node_pointer = media::pointer<Node>;
  using publication = typename Medium::publication;

 public:
  explicit retired_nodes(Medium& medium) noexcept : medium_(medium) {}

  // Releases all that the last run left. `leftmost`: the tree's leftmost leaf. Throws pmlab::error: the queue is
  // corrupt, and nothing was released.
  void begin(Node& leftmost) {
    leftmost_ = last_ = &leftmost;
    constexpr std::size_t at_once = media::publication_limit - 1;
    const std::vector<Node*> left = found();
    for (std::size_t done = 0; done < left.size(); done += at_once) {
      const std::size_t end = std::min(done + at_once, left.size());
      publication change(medium_);
      publish_next(change, leftmost, left[end - 1]->next_retired.load(std::memory_order_acquire));  // (H1)
      for (std::size_t i = done; i < end; ++i) change.release(left[i], sizeof(Node));               // (H2)
      // (H1), (H2) < return: one publication, so a block is in the queue or free, never both.
      change.commit();
    }
  }

  // Commits `change`, which unlinks these nodes, together with their way into the queue. The caller holds their locks.
  void commit(publication& change, std::span<Node* const> unlinked) {
    const std::scoped_lock guard(mutex_);
    Node* last = last_;
    for (Node* const n : unlinked) {
      publish_next(change, *last, medium_.locate(n));  // (H3)
      n->publish_gone(change);                         // (H4)
      last = n;
    }
    change.commit();
    // (H3), (H4) < return: one publication with the unlinking, so a crash leaves a node in the tree or in the queue.
    last_ = last;
    count_.fetch_add(unlinked.size(), std::memory_order_relaxed);
  }

  // Releases the block of a node that no reader can be in.
  void release(Node& n) {
    const std::scoped_lock guard(mutex_);
    // Nodes are released about in the order in which they were retired: it is one of the first.
    Node* before = leftmost_;
    while (next_of(*before) != &n) before = next_of(*before);
    publication change(medium_);
    publish_next(change, *before, n.next_retired.load(std::memory_order_acquire));  // (H5)
    change.release(&n, sizeof(Node));                                               // (H6)
    // (H5), (H6) < return: as (H1), (H2).
    change.commit();
    if (last_ == &n) last_ = before;
    count_.fetch_sub(1, std::memory_order_relaxed);
  }

  // Nodes in the queue.
  [[nodiscard]] std::uint64_t count() const noexcept { return count_.load(std::memory_order_relaxed); }

 private:
  static void publish_next(publication& change, Node& n, node_pointer next) {
    media::publish_store(change, n.next_retired, next);  // (H7)
    // (H7) < return: (H1), (H3) and (H5) are it.
  }

  [[nodiscard]] Node* next_of(Node& n) const noexcept {
    const node_pointer next = n.next_retired.load(std::memory_order_acquire);
    assert(next);
    return medium_.resolve(next);
  }

  // The nodes in the queue, the oldest first. Follows no pointer that cannot name a node, and terminates.
  [[nodiscard]] std::vector<Node*> found() const {
    std::vector<Node*> result;
    std::unordered_set<std::uint64_t> met;
    for (node_pointer at = leftmost_->next_retired.load(std::memory_order_acquire); at;) {
      if (!media::can_name(medium_, at) || !medium_.resolve(at)->is_gone() || !met.insert(at.word()).second)
        throw damaged_tree(Node::tree_name, "its retired nodes");
      result.push_back(medium_.resolve(at));
      at = result.back()->next_retired.load(std::memory_order_acquire);
    }
    return result;
  }

  Medium& medium_;
  Node* leftmost_ = nullptr;
  Node* last_ = nullptr;  // last node of the queue; `leftmost_` if it is empty
  std::mutex mutex_;
  std::atomic<std::uint64_t> count_{0};
};

}  // namespace pmlab::indexes::detail
