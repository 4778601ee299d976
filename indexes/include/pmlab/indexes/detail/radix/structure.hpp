// Changes of a radix tree's structure: new entries and nodes, larger, smaller and removed nodes.
//
// Each is one publication: of the new block if there is one, of one link, and of the unlinked node's way into the
// limbo.
//
//   a slot has an entry with another key     a new node for both, at the digit in which they differ
//   a key leaves the path above a node       a new parent of the node and of the key's entry. The node itself does not
//                                            change: its header has the path from the root
//   a node is full                           a larger one, with its children and the new entry, replaces it
//   few children are left in it              a smaller one replaces it
//   one is left; none is                     the parent's slot gets it; becomes empty
//
// Invariants:
//   R1  The root is never replaced. Any other node is linked by exactly one slot, of a node that is linked.
//   R2  A node is `gone`, and does not change any more, when its link was replaced, with the locks of both nodes held.
//       A writer that locked a node checks that. A reader in such a node reads a state that was current during its own
//       operation: the link to it, or to a node above it, was replaced after the operation had begun.
//   R3  A link has the kind and the depth of its child. The value of a slot with a link has no meaning.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/radix/limbo.hpp>
#include <pmlab/indexes/detail/radix/node.hpp>
#include <pmlab/indexes/detail/radix/walk.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/epoch.hpp>
#include <pmlab/sync/several_locks.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>

namespace pmlab::indexes::detail::radix {

// A node, as the link to it describes it.
struct position {
  header* n;
  unsigned kind;
  unsigned depth;
};

// A node on the way of a key, and the slot that leads to it.
struct visited : position {
  slot* via;
  slot_word link;
};

// The way of a key: to the node that it ends in, and the slot there. Read without locks.
template <class Digits>
struct trail {
  std::array<visited, Digits::per_key> nodes;
  std::size_t count = 0;
  slot* end = nullptr;  // nullptr: the last node has no slot with the digit
  slot_word word;       // as `end` had it

  [[nodiscard]] const visited& last() const noexcept { return nodes[count - 1]; }
};

// Thread safety: every operation from any number of threads, but for `create` and `begin`. A node that an operation is
// given was read by its thread under the guard that it still holds; `nullopt`: another writer changed it since.
template <media::medium Medium, class Kinds>
class structure {
  using kinds = Kinds;
  using digits = typename kinds::digits;
  using publication = typename Medium::publication;
  using way_of_key = trail<digits>;

 public:
  explicit structure(Medium& medium)
      : medium_(medium),
        locks_(lock_stripes),
        limbo_(medium),
        epochs_(media::reclaim_batch_on<Medium>(reclaim_batch)) {}

  // Makes an empty tree: head and root node are durable before the root names them.
  void create(std::atomic<std::uint64_t>& root) {
    publication change(medium_);
    auto* const head = media::create<tree_head>(change);
    header* const top = head == nullptr ? nullptr : make_node(change, kinds::largest, 0, 0);
    if (top == nullptr) throw error("no space for an empty radix tree", "use a larger pool");
    head->root.store(medium_.locate(top).word(), std::memory_order_relaxed);
    media::flush(medium_, *head);                      // (M1)
    medium_.flush(top, kinds::bytes(kinds::largest));  // (M2)
    medium_.fence();                                   // (M3)
    change.store(root, medium_.locate(head).word());   // (M4)
    // (M1), (M2) < (M3) < (M4): the root never names memory that is not durable.
    change.commit();
  }

  // Opens the tree of this head; returns its root node. Throws pmlab::error: it is corrupt.
  [[nodiscard]] header& begin(tree_head& head) {
    header& root = root_at<kinds>(medium_, head);
    limbo_.begin(head.limbo);
    return root;
  }

  [[nodiscard]] sync::version_lock& lock_of(const header* n) const noexcept {
    return locks_[reinterpret_cast<std::uintptr_t>(n) / media::cache_line_bytes];
  }
  [[nodiscard]] sync::epochs& epochs() noexcept { return epochs_; }

  // The bytes of DRAM.
  [[nodiscard]] std::uint64_t dram_bytes() const noexcept { return locks_.bytes(); }
  // The bytes of nodes that wait to be released, and of the head. REQUIRES: no writer.
  [[nodiscard]] std::uint64_t medium_bytes_beside_nodes() const { return sizeof(tree_head) + limbo_.bytes(); }
  // Checks the nodes that wait. REQUIRES: no writer.
  void check_unlinked(check_report& report) const { limbo_.check(report); }

  // Links lead to nodes, and depths increase, after any crash. If this does not hold, the medium was damaged: an
  // operation throws, and neither crashes nor loops for ever.
  [[nodiscard]] position child_at(slot_word link, unsigned depth) const {
    if (!is_link_to_node<kinds>(medium_, link, depth)) [[unlikely]]
      throw corrupt("a link");
    return {medium_.resolve(media::pointer<header>(link.child())), link.kind(), link.depth()};
  }

  // The slot in which the way of `key` continues or ends, if there is one.
  [[nodiscard]] found_slot slot_in(const position& at, key_type key) const noexcept {
    return kinds::as_kind(*at.n, at.kind, [&](auto& n) {
      return n.of_digit(digits::at(key, at.depth), at.depth,
                        [&](const auto& object) { media::annotate_read(medium_, object); });
    });
  }

  // An entry for a digit without a child.
  std::optional<outcome> add(const way_of_key& way, key_type key, value_type value) {
    const visited& at = way.last();
    {
      const std::scoped_lock held(lock_of(at.n));
      if (at.n->is_gone()) return std::nullopt;
      if (!slot_in(at, key).word.is_empty()) return std::nullopt;
      const place free = place_in(at, digits::at(key, at.depth));
      if (free.to != nullptr) {
        free.to->value.store(value, std::memory_order_release);  // (P1)
        if (free.index != nullptr) {
          free.index->store(free.index_value, std::memory_order_release);  // (P2)
          media::flush(medium_, *free.index);                              // (P3)
        }
        free.to->word.store(slot_word::entry(key).word(), std::memory_order_release);  // (P4) commit
        media::flush(medium_, *free.to);                                               // (P5)
        medium_.fence();                                                               // (P6)
        // (P1) < (P4): one line, so no crash image holds the key without its value.
        // (P2) < (P3) < (P6), (P4) < (P5) < (P6) < unlock: the entry that a reader returns is durable, and so is its
        // index. If a crash keeps the slot alone, nothing leads to it (woart/indexed_node.hpp).
        return outcome::inserted;
      }
    }
    return grow(way.nodes[way.count - 2], at, key, value);
  }

  // A node of `way` that is unlinked, or nullptr: for a writer whose way another one changed. If its next way has the
  // same node, the medium was damaged.
  [[nodiscard]] const header* unlinked_in(const way_of_key& way) const {
    for (std::size_t i = 0; i < way.count; ++i) {
      const std::scoped_lock held(lock_of(way.nodes[i].n));  // the publication that unlinks it is complete
      if (way.nodes[i].n->is_gone()) return way.nodes[i].n;
    }
    return nullptr;
  }

  // A linked node has a new parent, which has `key`, too. `other`: a key below the node; the two differ at `depth`.
  std::optional<outcome> add_parent(const visited& parent, const visited& at, key_type other, unsigned depth,
                                    key_type key, value_type value) {
    const std::scoped_lock held(lock_of(parent.n));
    if (parent.n->is_gone() || at.via->load() != at.link) return std::nullopt;
    return link_two(*at.via, digits::at(key, parent.depth), {digits::at(other, depth), at.link, 0}, depth, key, value);
  }

  // An entry gives its slot to a node that has `key`, too.
  std::optional<outcome> part(const visited& at, slot& s, slot_word found, unsigned depth, key_type key,
                              value_type value) {
    const std::scoped_lock held(lock_of(at.n));
    if (at.n->is_gone() || s.load() != found) return std::nullopt;
    const child present{digits::at(found.key(key), depth), found, s.value.load(std::memory_order_relaxed)};
    return link_two(s, digits::at(key, at.depth), present, depth, key, value);
  }

  // True if a locked node, in which this slot was just emptied, should be counted by `tidy`. Only parts of a large one
  // are counted here: the line of the slot, and if that is empty, an eighth of the node.
  [[nodiscard]] static bool may_be_sparse(const position& at, const slot& emptied) noexcept {
    if (at.depth == 0) return false;
    return kinds::as_kind(*at.n, at.kind, [&](const auto& n) {
      const auto number = static_cast<std::size_t>(&emptied - n.slots.data());
      const auto count_around = [&](std::size_t slots) {
        const std::size_t first = number / slots * slots;
        std::size_t count = 0;
        for (std::size_t i = first; i < first + slots; ++i)
          count += static_cast<std::size_t>(!n.slots[i].load().is_empty());
        return count;
      };
      constexpr std::size_t line = 4;
      constexpr std::size_t part = 8;
      if (n.capacity <= children::most) return is_sparse(at.kind, count_around(n.capacity));
      return count_around(line) == 0 && is_sparse(at.kind, part * count_around(n.capacity / part));
    });
  }

  // Replaces or removes the last node of `way` if few children are left in it, and, while nodes become empty, those
  // above it. Nothing happens without space, or if another writer changes one of these nodes at the moment: the node
  // stays as it is until the next erase in it.
  void reduce_end_of(const way_of_key& way) {
    for (std::size_t i = way.count - 1; i > 0; --i) {
      std::atomic<std::uint64_t>* const waiting = limbo_.take();
      if (waiting == nullptr) return;
      const reduced result = reduce(way.nodes[i - 1], way.nodes[i], *waiting);
      if (result == reduced::nothing)
        limbo_.give_back(*waiting);
      else
        retire(*waiting);
      if (result != reduced::parent_lost_a_child) return;
    }
  }

 private:
  // Unlinked nodes of a thread that wait before it looks whether some can be released: they are up to 4 KB each.
  static constexpr std::size_t reclaim_batch = 8;
  static constexpr std::size_t lock_stripes = media::lock_stripes_on<Medium>(std::size_t{1} << 14);

  // A place for a child, which is empty durably.
  [[nodiscard]] place place_in(const position& at, std::size_t digit) {
    return kinds::as_kind(*at.n, at.kind, [&](auto& n) {
      return n.free_place(digit, at.depth, [this](slot& invisible) {
        invisible.word.store(0, std::memory_order_release);  // (I1)
        media::persist(medium_, invisible);                  // (I2)
        // (I1) < (I2) < (P2): if the index is durable first, it leads to no entry of an operation that never returned.
      });
    });
  }

  // A node that is not linked yet, or nullptr: no space.
  [[nodiscard]] header* make_node(publication& change, unsigned kind, key_type path, unsigned depth) {
    void* const block = change.allocate(kinds::bytes(kind), kinds::alignment(kind));
    if (block == nullptr) return nullptr;
    header& made = kinds::make(block, kind);
    made.set_path(path & digits::mask_before(depth), depth);
    return &made;
  }

  // Adds a child to a node that is not linked yet.
  static void add_privately(const position& to, std::size_t digit, slot_word word, value_type value) {
    const place free = kinds::as_kind(
        *to.n, to.kind, [&](auto& n) { return n.free_place(digit, to.depth, [](slot& /*invisible*/) {}); });
    assert(free.to != nullptr);
    if (free.index != nullptr) free.index->store(free.index_value, std::memory_order_relaxed);
    free.to->value.store(value, std::memory_order_relaxed);
    free.to->word.store(word.word(), std::memory_order_relaxed);
  }

  // Replaces the child `present` of a locked node, in slot `s`, by a new node at `depth` with it and `key`.
  outcome link_two(slot& s, std::size_t digit, const child& present, unsigned depth, key_type key, value_type value) {
    publication change(medium_);
    const position made{make_node(change, kinds::smallest, key, depth), kinds::smallest, depth};
    if (made.n == nullptr) return outcome::full;
    const slot_word moved = present.word.is_link() ? present.word.with_digit(present.digit) : present.word;
    add_privately(made, present.digit, moved, present.value);
    add_privately(made, digits::at(key, depth), slot_word::entry(key), value);
    persist_new(made);
    change.store(s.word, link_to(made, digit).word());  // (S1)
    // (S1) < return: no other word changes. The header of a node below `made` has its path from the root, which is the
    // same, in one word that never changes.
    change.commit();
    return outcome::inserted;
  }

  [[nodiscard]] slot_word link_to(const position& at, std::size_t digit) const noexcept {
    return slot_word::link(medium_.locate(at.n).word(), at.kind, at.depth, digit);
  }

  void persist_new(const position& at) {
    medium_.flush(at.n, kinds::bytes(at.kind));  // (N1)
    medium_.fence();                             // (N2)
    // (N1) < (N2) < (S1), (G1): a node is complete before the one word that links it, and it is allocated with that
    // very store.
  }

  // Replaces a full node by a larger one that has `key`, too.
  std::optional<outcome> grow(const visited& parent, const visited& at, key_type key, value_type value) {
    std::atomic<std::uint64_t>* const waiting = limbo_.take();
    if (waiting == nullptr) return outcome::full;
    bool unlinked = false;
    const std::optional<outcome> answer = [&]() -> std::optional<outcome> {
      const sync::several_locks held{&lock_of(parent.n), &lock_of(at.n)};
      if (!is_linked(parent, at)) return std::nullopt;
      if (!slot_in(at, key).word.is_empty() || place_in(at, digits::at(key, at.depth)).to != nullptr)
        return std::nullopt;
      publication change(medium_);
      const position made{make_node(change, at.kind + 1, key, at.depth), at.kind + 1, at.depth};
      if (made.n == nullptr) return outcome::full;
      copy_children(at, made);
      add_privately(made, digits::at(key, at.depth), slot_word::entry(key), value);
      replace_node(change, parent, at, made, key, *waiting);
      unlinked = true;
      return outcome::inserted;
    }();
    if (unlinked)
      retire(*waiting);
    else
      limbo_.give_back(*waiting);
    return answer;
  }

  // True if no other writer changed the way from `parent` to `at`. REQUIRES: the locks of both.
  [[nodiscard]] static bool is_linked(const visited& parent, const visited& at) noexcept {
    return !parent.n->is_gone() && !at.n->is_gone() && at.via->load() == at.link;
  }

  // `made`, which is complete but for its write-back, takes the place of `at`. The locks of it and of its parent are
  // held. `key`: any key that leads there.
  void replace_node(publication& change, const visited& parent, const visited& at, const position& made, key_type key,
                    std::atomic<std::uint64_t>& waiting) {
    persist_new(made);
    change.store(at.via->word, link_to(made, digits::at(key, parent.depth)).word());  // (G1)
    // (G1) < return: with the node's way into the limbo.
    unlink(change, at, waiting);
  }

  // Commits `change`, which overwrites the link to `at`.
  void unlink(publication& change, const visited& at, std::atomic<std::uint64_t>& waiting) {
    limbo_.publish(change, waiting, at.link, *at.n);
    change.commit();
  }

  // Releases the block of an unlinked node when no reader can be in it. Without a lock. No memory for that: the next
  // open does it.
  void retire(std::atomic<std::uint64_t>& waiting) {
    epochs_.retire([this, &waiting] { limbo_.release(waiting); });
  }

  // Calls function(digit, word, value) for the children of a locked node.
  template <class Function>
  static void for_each_child(const position& at, Function&& function) {
    kinds::as_kind(*at.n, at.kind, [&](const auto& n) {
      for (std::size_t i = 0; i < n.capacity; ++i) {
        if (!n.has_child(i, at.depth)) continue;
        const slot_word word = n.slots[i].load();
        function(n.has_slot_for_each_digit ? i : word.template digit<digits>(at.depth), word,
                 n.slots[i].value.load(std::memory_order_relaxed));
      }
    });
  }

  static void copy_children(const position& from, const position& to) {
    for_each_child(from,
                   [&](std::size_t digit, slot_word word, value_type value) { add_privately(to, digit, word, value); });
  }

  [[nodiscard]] static bool is_sparse(unsigned kind, std::size_t count) noexcept {
    return count <= 1 || kinds::fitting(kind, count) != 0;
  }

  enum class reduced : std::uint8_t { nothing, replaced, parent_lost_a_child };

  reduced reduce(const visited& parent, const visited& at, std::atomic<std::uint64_t>& waiting) {
    const sync::several_locks held{&lock_of(parent.n), &lock_of(at.n)};
    if (!is_linked(parent, at)) return reduced::nothing;
    std::size_t count = 0;
    child only{};
    for_each_child(at, [&](std::size_t digit, slot_word word, value_type value) {
      ++count;
      only = {digit, word, value};
    });
    const key_type path = at.n->path();
    publication change(medium_);
    if (count == 0) {
      change.store(at.via->word, 0);  // (D1)
      unlink(change, at, waiting);
      // (D1) < return: with the node's way into the limbo (B3).
      return reduced::parent_lost_a_child;
    }
    if (count == 1) {
      const std::size_t digit = digits::at(path, parent.depth);
      if (only.word.is_entry()) {
        // Until (D4) the slot has a link, whose value has no meaning (R3).
        at.via->value.store(only.value, std::memory_order_release);  // (D2)
        media::persist(medium_, *at.via);                            // (D3)
      }
      change.store(at.via->word, (only.word.is_link() ? only.word.with_digit(digit) : only.word).word());  // (D4)
      // (D2) < (D3) < (D4): no crash image holds the key without its value.
      unlink(change, at, waiting);
      return reduced::replaced;
    }
    const unsigned kind = kinds::fitting(at.kind, count);
    if (kind == 0) return reduced::nothing;
    const position made{make_node(change, kind, path, at.depth), kind, at.depth};
    if (made.n == nullptr) return reduced::nothing;
    copy_children(at, made);
    replace_node(change, parent, at, made, path, waiting);
    return reduced::replaced;
  }

  Medium& medium_;
  sync::version_lock_table locks_;
  radix::limbo<Medium, kinds> limbo_;
  sync::epochs epochs_;  // its destructor releases unlinked nodes
};

}  // namespace pmlab::indexes::detail::radix
