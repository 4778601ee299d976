// A radix tree over keys of 8 bytes, whose changes are committed by stores of 8 bytes: the code of WORT and WOART, which
// differ in their kinds of nodes.
//
// Thread safety: any operation from any number of threads (`check`, `stats`, `size`, `for_each`: no concurrent writer).
// Progress: readers write nothing shared; they wait only while a writer changes the node that their search ends in (or
// one that shares its version lock). Writers lock that node; one that replaces or removes a node locks its parent, too.
//
// Durability: the result of an operation survives a crash (strict durable linearizability). Links are stored by
// publications: a reader that follows one depends on nothing that a crash undoes. An entry, or its absence, is read
// under the version of the node's lock, which its writer releases when the change is durable.
//
// Layout (medium):
//
//   named root -> head: | root node | limbo (limbo.hpp) |
//                            |
//                            v
//                   root: | path, depth | gone | slot 0 | slot 1 | ...              a slot for each digit
//                                                   |
//                          entry: | key | value |   or   link: | child, its kind and depth | - |       (word.hpp)
//                                                                |
//                                                                v
//                                                              node: | path, depth | gone | slots |    (node.hpp)
//
// An entry is in the slot that its key leads to, not in a leaf of its own: an insert flushes one line and allocates
// nothing, and a search ends in the node. The slot's word is stored after the value, in the same line.
//
// Changes of the structure. Each is one publication, of the new block if there is one, of one link, and of the unlinked
// node's way into the limbo:
//
//   a slot has an entry with another key     a new node for both at the digit in which they differ
//   a key leaves the path above a node       a new parent of the node and of the key's entry. The node itself does not
//                                            change: its header has the path from the root
//   a node is full                           a larger one with its children and the new entry replaces it
//   few children are left in it              a smaller one replaces it
//   one is left; none                        the parent's slot gets it; becomes empty
//
// Invariants (X1, X2: node.hpp; B1, B2: limbo.hpp):
//   R1  The root is never replaced. A node other than it is linked by exactly one slot, of a node that is linked.
//   R2  A node is `gone`, and does not change any more, when its link was replaced, with the locks of both nodes held.
//       A writer that locked a node checks that. A reader in such a node reads a state that was current during its own
//       operation: the link to it, or to a node above it, was replaced after the operation had begun.
//   R3  The kind and the depth in a link are those of the child; a link's slot may have any value.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/radix/limbo.hpp>
#include <pmlab/indexes/detail/radix/node.hpp>
#include <pmlab/indexes/detail/radix/walk.hpp>
#include <pmlab/indexes/detail/range_by_scan.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/epoch.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace pmlab::indexes::detail::radix {

// The locks of two nodes, in the order of their addresses; once, if they share one.
class two_locks {
 public:
  two_locks(sync::version_lock& a, sync::version_lock& b) noexcept
      : first_(std::less<>()(&a, &b) ? a : b),
        second_(&a == &b        ? nullptr
                : &first_ == &a ? &b
                                : &a) {
    first_.lock();
    if (second_ != nullptr) second_->lock();
  }
  two_locks(const two_locks&) = delete;
  two_locks& operator=(const two_locks&) = delete;
  ~two_locks() {
    if (second_ != nullptr) second_->unlock();
    first_.unlock();
  }

 private:
  sync::version_lock& first_;
  sync::version_lock* second_;
};

// `Layout`: the name and version of the layout, and its `kinds` of nodes. See the file's prologue for use, thread
// safety, durability and layout. Operations: a node for each digit of the key at most; a scan of m entries
// O(digits + m).
template <media::medium Medium, class Layout>
class tree {
  using kinds = typename Layout::kinds;
  using digits = typename kinds::digits;
  using publication = typename Medium::publication;

 public:
  static constexpr std::string_view layout_name = Layout::layout_name;
  static constexpr std::uint64_t layout_version = Layout::layout_version;

  // Opens the tree `name` in `medium`, or creates an empty one. Takes about the same time for a tree of any size.
  // Throws pmlab::error: the name belongs to another layout; head, root or limbo are corrupt; no space for an empty
  // tree; std::bad_alloc: no memory for the locks. `medium` must outlive the index.
  static tree open(Medium& medium, std::string_view name = layout_name) { return tree(medium, name); }

  // Calls function(key, value) for the readable entries of a damaged tree, ascending. Changes nothing. Throws
  // pmlab::error at the end if entries may be missing, with the number of the damaged places.
  template <class Function>
  static void salvage(Medium& medium, std::string_view name, Function&& function) {
    const std::uint64_t root =
        medium.named_root(name, layout_name, layout_version).word->load(std::memory_order_acquire);
    radix::salvage<kinds>(medium, root, function);
  }

  tree(const tree&) = delete;
  tree& operator=(const tree&) = delete;
  ~tree() = default;

  // Adds (key, value). inserted; exists: the key is present and was left unchanged; full: no space, nothing changed.
  // Durable on return. One flush and one fence (a second flush in a node with an index); a change of the structure
  // publishes one node.
  outcome insert(key_type key, value_type value) {
    return put(key, value, [](slot&) { return outcome::exists; });
  }

  // Adds (key, value) or replaces the value of `key`. inserted, updated or full. Durable on return.
  outcome upsert(key_type key, value_type value) {
    return put(key, value, [&](slot& s) { return replace(s, value); });
  }

  // Replaces the value of `key`. updated or absent. Durable on return; one flush and one fence.
  outcome update(key_type key, value_type value) {
    return change(key, [&](const position&, slot& s) { return replace(s, value); });
  }

  // Removes `key`. erased or absent. Durable on return; one flush and one fence. A node with few children left is
  // replaced by a smaller one, or removed.
  outcome erase(key_type key) {
    const auto guard = epochs_.pin();
    bool sparse = false;
    const outcome answer = change(key, [&](const position& at, slot& s) {
      s.word.store(0, std::memory_order_release);  // (E1) commit
      media::persist(medium_, s);                  // (E2)
      // (E1) < (E2) < unlock: a reader that misses the key answers only when its removal is durable.
      sparse = may_be_sparse(at, s);
      return outcome::erased;
    });
    if (sparse) tidy(key);
    return answer;
  }

  // The value of `key`. Reads one slot for each node on the way; in small nodes some more.
  std::optional<value_type> find(key_type key) {
    const auto guard = epochs_.pin();
    return search(key);
  }

  // Prefetches the first slot that a search for `key` reads.
  void prefetch_find(key_type key) noexcept { prefetch(position{root_, kinds::largest, 0}, key); }

  // values[i] := find(keys[i]). The searches go down together, so that the cache misses of a level overlap.
  void find_batch(std::span<const key_type> keys, std::span<std::optional<value_type>> values);

  // Fills `out` with the entries whose keys are >= from, ascending; returns their number. The children of a node are
  // read atomically, up to 48 at a time; entries that are present during the whole scan are never missed.
  std::size_t scan(key_type from, std::span<entry> out) {
    const auto guard = epochs_.pin();
    std::size_t count = 0;
    if (!out.empty()) scan_below(position{root_, kinds::largest, 0}, from, out, count);
    return count;
  }

  // Calls function(key, value) for every entry of [first, last], ascending. Writers may run; see `scan`.
  template <class Function>
  void for_each_in(key_type first, key_type last, Function&& function) {
    detail::for_each_in_by_scan(*this, first, last, function);
  }

  // Calls function(key, value) for every entry, ascending.
  template <class Function>
  void for_each(Function&& function) const {
    walk<kinds>(
        medium_, *root_, [](const auto&...) {}, function);
  }

  // Entries in the tree; walks it.
  [[nodiscard]] std::uint64_t size() const {
    std::uint64_t entries = 0;
    for_each([&](key_type, value_type) { ++entries; });
    return entries;
  }

  // depth = nodes on the longest way; nodes = all nodes of the tree; load factor = entries and links / slots. The bytes
  // in the medium include nodes that wait in the limbo.
  [[nodiscard]] index_stats stats() const;

  // Checks every invariant above.
  [[nodiscard]] check_report check() const { return radix::check<kinds>(medium_, *root_); }

 private:
  static constexpr std::size_t batch_width = 16;
  // Unlinked nodes of a thread that wait before it looks whether some can be released: they are up to 4 KB each.
  static constexpr std::size_t reclaim_batch = 8;
  static constexpr std::size_t lock_stripes = media::lock_stripes_on<Medium>(std::size_t{1} << 14);

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
  struct trail {
    std::array<visited, digits::per_key> nodes;
    std::size_t count = 0;
    slot* end = nullptr;  // nullptr: the last node has no slot with the digit
    slot_word word;       // as `end` had it

    [[nodiscard]] const visited& last() const noexcept { return nodes[count - 1]; }
  };

  tree(Medium& medium, std::string_view name)
      : medium_(medium), locks_(lock_stripes), limbo_(medium), epochs_(media::reclaim_batch_on<Medium>(reclaim_batch)) {
    std::atomic<std::uint64_t>& root = *medium.named_root(name, layout_name, layout_version).word;
    if (root.load(std::memory_order_acquire) == 0) create(root);
    tree_head& head = head_at(medium, media::pointer<tree_head>(root.load(std::memory_order_acquire)));
    root_ = &root_at<kinds>(medium, head);
    limbo_.begin(head.limbo);
  }

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

  // ---- reading ----

  [[nodiscard]] sync::version_lock& lock_of(const header* n) const noexcept {
    return locks_[reinterpret_cast<std::uintptr_t>(n) / media::cache_line_bytes];
  }

  // Links lead to nodes, and depths increase, after any crash. If this does not hold, the medium was damaged: an
  // operation throws, and neither crashes nor loops for ever.
  [[nodiscard]] static position child_at(const Medium& medium, slot_word link, unsigned depth) {
    if (!is_link_to_node<kinds>(medium, link, depth)) [[unlikely]]
      throw corrupt("a link");
    return {medium.resolve(media::pointer<header>(link.child())), link.kind(), link.depth()};
  }

  void prefetch(const position& at, key_type key) const noexcept {
    kinds::as_kind(*at.n, at.kind, [&](const auto& n) {
      n.first_read(digits::at(key, at.depth), [this](const auto& object) { media::prefetch(medium_, object); });
    });
  }

  // The slot in which the way of `key` continues or ends, or nullptr.
  [[nodiscard]] static slot* slot_in(Medium& medium, const position& at, key_type key) noexcept {
    return kinds::as_kind(*at.n, at.kind, [&](auto& n) {
      return n.of_digit(digits::at(key, at.depth), at.depth,
                        [&](const auto& object) { media::annotate_read(medium, object); });
    });
  }

  // One step of a search: `at` moves to the next node, or (true) `found` is the value of `key`.
  static bool step_towards(Medium& medium, const sync::version_lock_table& locks, key_type key, position& at,
                           std::optional<value_type>& found) {
    const slot* s = slot_in(medium, at, key);
    slot_word word = s == nullptr ? slot_word(0) : s->load();
    if (!word.is_link()) {
      // The search ends here, and its result must be durable: now the slot is read under the node's version.
      const sync::version_lock& lock = locks[reinterpret_cast<std::uintptr_t>(at.n) / media::cache_line_bytes];
      const std::uint64_t version = lock.read_begin();
      s = slot_in(medium, at, key);
      word = s == nullptr ? slot_word(0) : s->load();
      const value_type value = s == nullptr ? 0 : s->value.load(std::memory_order_acquire);
      if (!lock.read_validate(version)) [[unlikely]]
        return false;
      if (!word.is_link()) {
        found = word == slot_word::entry(key) ? std::optional(value) : std::nullopt;
        return true;
      }
    }
    at = child_at(medium, word, at.depth);
    return false;
  }

  // REQUIRES: a guard.
  std::optional<value_type> search(key_type key) {
    std::optional<value_type> found;
    for (position at{root_, kinds::largest, 0}; !step_towards(medium_, locks_, key, at, found);) {
    }
    return found;
  }

  void descend(key_type key, trail& way) const {
    way.count = 0;
    visited at{{root_, kinds::largest, 0}, nullptr, slot_word(0)};
    for (;;) {
      way.nodes[way.count++] = at;
      way.end = slot_in(medium_, at, key);
      way.word = way.end == nullptr ? slot_word(0) : way.end->load();
      if (!way.word.is_link()) return;
      at = {child_at(medium_, way.word, at.depth), way.end, way.word};
    }
  }

  // Adds the entries below a node with keys >= from. False: `out` is full.
  bool scan_below(const position& at, key_type from, std::span<entry> out, std::size_t& count) const {
    const key_type least = at.n->path();
    if ((least | ~digits::mask_before(at.depth)) < from) return true;
    std::size_t next = least >= from ? 0 : digits::at(from, at.depth);
    const sync::version_lock& lock = lock_of(at.n);
    children found;
    while (next < digits::values) {
      const std::uint64_t version = lock.read_begin();
      found.clear();
      const std::size_t end = kinds::as_kind(*at.n, at.kind, [&](const auto& n) {
        media::annotate_read(medium_, n);
        return n.collect(next, at.depth, found);
      });
      if (!lock.read_validate(version)) continue;
      next = end;
      for (const child& c : found.all())
        if (c.word.is_link()) prefetch(child_at(medium_, c.word, at.depth), 0);
      for (const child& c : found.all()) {
        if (c.word.is_link()) {
          if (!scan_below(child_at(medium_, c.word, at.depth), from, out, count)) return false;
          continue;
        }
        // Below the root an entry has the root digit of its node's path.
        const key_type key = c.word.key(at.depth == 0 ? key_type{c.digit} << (64 - digits::bits) : least);
        if (key < from) continue;
        out[count++] = {key, c.value};
        if (count == out.size()) return false;
      }
    }
    return true;
  }

  // ---- writing ----

  // update and erase: runs `operation(node, slot)` with the node of `key`'s entry locked, or returns `absent`.
  template <class Operation>
  outcome change(key_type key, Operation&& operation) {
    const auto guard = epochs_.pin();
    trail way;
    for (;;) {
      descend(key, way);
      if (way.word != slot_word::entry(key)) {
        if (!search(key)) return outcome::absent;
        continue;
      }
      const std::scoped_lock held(lock_of(way.last().n));
      if (!way.last().n->is_gone() && way.end->load() == way.word) return operation(way.last(), *way.end);
    }
  }

  // insert and upsert: `on_existing(slot)` handles a key that is present.
  template <class OnExisting>
  outcome put(key_type key, value_type value, OnExisting&& on_existing) {
    for (;;) {
      const outcome answer = put_if_space(key, value, on_existing);
      if (answer != outcome::full || epochs_.reclaim() == 0) return answer;
    }
  }

  template <class OnExisting>
  outcome put_if_space(key_type key, value_type value, OnExisting& on_existing) {
    const auto guard = epochs_.pin();
    trail way;
    for (;;) {
      descend(key, way);
      if (const std::optional<outcome> answer = try_put(way, key, value, on_existing)) return *answer;
    }
  }

  // None: another writer was faster.
  template <class OnExisting>
  std::optional<outcome> try_put(const trail& way, key_type key, value_type value, OnExisting& on_existing) {
    const visited& last = way.last();
    if (way.word == slot_word::entry(key)) {
      const std::scoped_lock held(lock_of(last.n));
      if (last.n->is_gone() || way.end->load() != way.word) return std::nullopt;
      return on_existing(*way.end);
    }
    if (!way.word.is_empty() && !way.word.is_entry()) throw corrupt("a slot");
    // A key below the last node, as far as it is known: where `key` leaves its path, it leaves the tree.
    const key_type other =
        way.word.is_entry() ? way.word.key(key) : last.n->path() | (key & ~digits::mask_before(last.depth));
    const unsigned end = other == key ? last.depth : digits::first_difference(other, key);
    if (end < last.depth) {
      std::size_t i = 1;
      while (way.nodes[i].depth <= end) ++i;
      return add_parent(way.nodes[i - 1], way.nodes[i], other, end, key, value);
    }
    return way.word.is_entry() ? part(last, *way.end, way.word, end, key, value) : add(way, key, value);
  }

  outcome replace(slot& s, value_type value) {
    s.value.store(value, std::memory_order_release);  // (U1) commit
    media::persist(medium_, s);                       // (U2)
    // (U1) < (U2) < unlock: the value that a reader returns is durable.
    return outcome::updated;
  }

  // An entry for a digit without a child.
  std::optional<outcome> add(const trail& way, key_type key, value_type value) {
    const visited& at = way.last();
    {
      const std::scoped_lock held(lock_of(at.n));
      if (at.n->is_gone()) return std::nullopt;
      const slot* const there = slot_in(medium_, at, key);
      if (there != nullptr && !there->load().is_empty()) return std::nullopt;
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
    void* const block = change.allocate(kinds::bytes(kind), block_alignment);
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
      const two_locks held(lock_of(parent.n), lock_of(at.n));
      if (!is_linked(parent, at)) return std::nullopt;
      const slot* const there = slot_in(medium_, at, key);
      if (there != nullptr || place_in(at, digits::at(key, at.depth)).to != nullptr) return std::nullopt;
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
    limbo_.publish(change, waiting, at.link);
    change.commit();
    at.n->gone.store(1, std::memory_order_release);
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

  // ---- reclaiming ----

  // True if a locked node, in which this slot was just emptied, should be counted by `tidy`. Of a large one only parts
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

  [[nodiscard]] static bool is_sparse(unsigned kind, std::size_t count) noexcept {
    return count <= 1 || kinds::fitting(kind, count) != 0;
  }

  // Notes that the node where `key` was is sparse, and replaces or removes the one noted before: so a key that is
  // inserted and erased in turns does not make its node change each time. While nodes become empty, those above are
  // removed, too. REQUIRES: a guard. Without space, nothing happens.
  void tidy(key_type key) {
    const key_type same_node = key | 1;  // the ways of two keys that differ in the last bit end in one node
    const key_type before = sparse_.exchange(same_node, std::memory_order_relaxed);
    if (before == same_node || before == 0) return;
    trail way;
    descend(before, way);
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

  enum class reduced : std::uint8_t { nothing, replaced, parent_lost_a_child };

  reduced reduce(const visited& parent, const visited& at, std::atomic<std::uint64_t>& waiting) {
    const two_locks held(lock_of(parent.n), lock_of(at.n));
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
      at.via->value.store(only.value, std::memory_order_release);                                          // (D2)
      media::persist(medium_, *at.via);                                                                    // (D3)
      change.store(at.via->word, (only.word.is_link() ? only.word.with_digit(digit) : only.word).word());  // (D4)
      // (D2) < (D3) < (D4): until then the slot has a link, whose value does not count (R3).
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
  header* root_ = nullptr;
  radix::limbo<Medium, kinds> limbo_;
  std::atomic<key_type> sparse_{0};  // a key whose way ends in a sparse node, or 0; see `tidy`
  sync::epochs epochs_;              // its destructor releases unlinked nodes
};

template <media::medium Medium, class Layout>
void tree<Medium, Layout>::find_batch(std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
  assert(keys.size() == values.size());
  const auto guard = epochs_.pin();
  std::array<position, batch_width> at;
  for (std::size_t done = 0; done < keys.size(); done += batch_width) {
    const std::size_t width = std::min(batch_width, keys.size() - done);
    at.fill({root_, kinds::largest, 0});
    for (std::size_t searching = width; searching > 0;)
      for (std::size_t i = 0; i < width; ++i) {
        if (at[i].n == nullptr) continue;
        const key_type key = keys[done + i];
        if (step_towards(medium_, locks_, key, at[i], values[done + i])) {
          at[i].n = nullptr;
          --searching;
        } else {
          prefetch(at[i], key);
        }
      }
  }
}

template <media::medium Medium, class Layout>
index_stats tree<Medium, Layout>::stats() const {
  index_stats result;
  std::uint64_t slots = 0;
  walk<kinds>(
      medium_, *root_,
      [&](const walked_node& at) {
        ++result.nodes;
        slots += kinds::capacity(at.kind);
        result.medium_bytes += kinds::bytes(at.kind);
        result.depth = std::max<std::uint64_t>(result.depth, at.level + 1);
      },
      [&](key_type, value_type) { ++result.entries; });
  result.load_factor = static_cast<double>(result.entries + result.nodes - 1) / static_cast<double>(slots);
  result.medium_bytes += sizeof(tree_head) + limbo_.bytes();
  result.dram_bytes = locks_.bytes();
  return result;
}

}  // namespace pmlab::indexes::detail::radix
