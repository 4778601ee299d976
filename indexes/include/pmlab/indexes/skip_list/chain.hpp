// A lock-free sorted list in the medium, after Harris, 2001 [Harris], made durable by "link and persist".
#pragma once

#include <pmlab/indexes/skip_list/node.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstdint>

namespace pmlab::indexes::detail::skip_list {

// The keys along a walk: they never descend. So a walk over a damaged list terminates: a circle descends, or all its
// keys are equal.
class ascent {
 public:
  // False: the list is damaged.
  [[nodiscard]] bool goes_to(key_type key) noexcept {
    if (key > last_) [[likely]] {
      last_ = key;
      equal_ = 0;
      return true;
    }
    return key == last_ && ++equal_ < most_equal;
  }

 private:
  // Marked nodes of one key that are not snipped off yet: fewer than there are threads.
  static constexpr std::uint32_t most_equal = 1U << 16;
  key_type last_ = 0;
  std::uint32_t equal_ = 0;
};

// The lists of a skip list: its entries, and the levels of persistent towers. Nodes are marked (deleted), then snipped
// off (no path leads there), then retired. REQUIRES for all of it: a guard of the index's epochs.
//
//   C1  A list that begins at a head and follows unmarked nodes is sorted, without duplicates. If adjacent nodes have
//       equal keys, only the last may be unmarked: a node is linked between two neighbours, which have other keys,
//       or behind the node of its key that it replaces (C6).
//   C2  The link of a marked node never changes but for its dirty bit.
//   C3  A thread that depends on a dirty link makes it durable first: to return its target, to overwrite it, or to
//       follow it.
//   C4  A walk that starts at a node that was unmarked after the walk's operation had begun visits only nodes that were
//       in the list at some moment since then. (A link that is read at an unmarked node leads to a node in the list
//       now; the link of a marked one leads where it led when the node was marked, and if that was before the operation
//       began, then the node was still in the list at some moment since, and its successor with it.) For a key between
//       two adjacent nodes of the walk it may return: absent at some moment since then.
//   C5  Snipping need not be durable before the nodes are reused: until then a crash restores at most marked nodes,
//       whose marks are durable (C3) and whose links are unchanged.
//   C6  A node is moved by one store: the link of the old one, marked, leads to the new one, a copy of it. Before it
//       the entry is the old node, after it the new one, in a crash image, too. Values of a node change only with its
//       lock held, and so does its place: no update is lost during the move. A marked node is a deleted entry if the
//       node behind it has another key, and was moved if it has the same one.
//
// Opening a list with persistent towers does not walk it, so it may be damaged: no walk leaves the medium, nor
// continues if keys descend; it throws pmlab::error then. (It does not check whether a link that stays in the medium
// leads to a node: `check` does.)
template <class Medium>
class chain {
 public:
  explicit chain(Medium& medium) noexcept : medium_(medium) {}

  // `right`: the first node at or above the key that is not marked, or nullptr; `left`: the one before it, whose link
  // was `link`: neither marked nor dirty, and leading to `right`.
  struct place {
    node* left;
    link_word link;
    node* right;
  };

  [[nodiscard]] node* target(link_word link) const {
    if (target_of(link) == 0) return nullptr;
    if (!can_follow(link)) [[unlikely]]
      throw corrupt("a link leads to no node");
    return unchecked_target(link);
  }
  // Not nullptr, and in the medium.
  [[nodiscard]] bool can_follow(link_word link) const noexcept {
    return media::can_name(medium_, media::pointer<node>(target_of(link)));
  }
  // The target, for a caller that does not read it before it is found to be a node.
  [[nodiscard]] node* unchecked_target(link_word link) const noexcept {
    return medium_.resolve(media::pointer<node>(target_of(link)));
  }
  [[nodiscard]] link_word word_of(const node* n) const noexcept { return n == nullptr ? 0 : medium_.locate(n).word(); }

  // The link of `n`, made durable.
  [[nodiscard]] link_word settled(node& n) const noexcept {
    const link_word link = n.next.load(std::memory_order_acquire);
    if (!is_dirty(link)) [[likely]]
      return link;
    return settle(n, link);
  }

  // Finds where a node with `key` belongs, and snips off the marked nodes of the key. `start`: a node below the key
  // that was unmarked since the operation began. False: start is marked now.
  [[nodiscard]] bool find_place(node& start, key_type key, place& at) const {
    for (;;) {
      at.left = &start;
      at.link = settled(start);
      if (is_marked(at.link)) return false;
      at.right = target(at.link);
      ascent keys;
      while (at.right != nullptr) {
        media::annotate_read(medium_, *at.right);
        const link_word next = settled(*at.right);
        const key_type here = at.right->key.load(std::memory_order_acquire);
        if (!keys.goes_to(here)) [[unlikely]]
          throw corrupt("its keys do not ascend");
        if (!is_marked(next)) {
          if (here >= key) break;
          at.left = at.right;
          at.link = next;
        }
        at.right = target(next);
      }
      const link_word wanted = word_of(at.right);
      if (at.link == wanted) return true;
      // Not flushed (C5).
      if (at.left->next.compare_exchange_strong(at.link, wanted, std::memory_order_acq_rel)) {
        at.link = wanted;
        return true;
      }
    }
  }

  // The first node at or above `key` on a walk that changes nothing, marked or not; nullptr: none. `start` as above.
  [[nodiscard]] node* first_from(node& start, key_type key) const {
    ascent keys;
    for (node* n = target(settled(start)); n != nullptr; n = target(settled(*n))) {
      media::annotate_read(medium_, *n);
      const key_type here = n->key.load(std::memory_order_acquire);
      if (!keys.goes_to(here)) [[unlikely]]
        throw corrupt("its keys do not ascend");
      if (here >= key) return n;
    }
    return nullptr;
  }

  // Links `made`, which no other thread can reach, between left and right. False: they are no longer neighbours.
  [[nodiscard]] bool link(const place& at, node& made) const noexcept {
    made.next.store(word_of(at.right), std::memory_order_release);
    media::persist(medium_, made);  // (P1)
    link_word expected = at.link;
    const link_word leading = word_of(&made) | dirty;
    if (!at.left->next.compare_exchange_strong(expected, leading, std::memory_order_acq_rel))  // (P2) commit
      return false;
    settle(*at.left, leading);  // (P3)
    // (P1) < (P2): no crash image leads to an incomplete node. Its link is stored last: until then a reused node has
    // its mark, whatever of the rest is durable (K5).
    // (P2) < (P3) < return: no other thread returns from the link before it is durable (C3).
    return true;
  }

  // Puts `made`, which no other thread can reach and which is signed, in the place of `n`, with key and value of `n`.
  // REQUIRES: the caller holds the lock of `n`, which is not marked.
  void replace(node& n, node& made) const noexcept {
    made.key.store(n.key.load(std::memory_order_relaxed), std::memory_order_relaxed);
    made.value.store(n.value.load(std::memory_order_relaxed), std::memory_order_relaxed);
    for (;;) {
      link_word link = settled(n);
      made.next.store(link, std::memory_order_release);
      media::persist(medium_, made);  // (V1)
      const link_word leading = word_of(&made) | mark | dirty;
      if (!n.next.compare_exchange_strong(link, leading, std::memory_order_acq_rel)) continue;  // (V2) commit
      settle(n, leading);                                                                       // (V3)
      // (V1) < (V2): as (P1) < (P2).
      // (V2) < (V3) < unlock: an update of the copy is found after a crash, because the link to the copy is.
      return;
    }
  }

  // Deletes `n`. False: it was deleted already; durably.
  bool mark_deleted(node& n) const noexcept {
    for (;;) {
      link_word link = settled(n);
      if (is_marked(link)) return false;
      if (n.next.compare_exchange_strong(link, link | mark | dirty, std::memory_order_acq_rel)) {  // (E1) commit
        settle(n, link | mark | dirty);                                                            // (E2)
        // (E1) < (E2) < answer: as (P2) < (P3).
        return true;
      }
    }
  }

 private:
  link_word settle(node& n, link_word link) const noexcept {
    media::persist(medium_, n.next);  // (D1)
    // (D1) < the bit is cleared: a link that is not dirty is durable. A crash may set it again, which costs a flush.
    n.next.compare_exchange_strong(link, link & ~dirty, std::memory_order_acq_rel);
    return link & ~dirty;
  }

  Medium& medium_;
};

}  // namespace pmlab::indexes::detail::skip_list
