// Towers in the medium: every level is a list of tower nodes, each of which leads one level down.
#pragma once

#include <pmlab/base/hash.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/skip_list/body.hpp>
#include <pmlab/indexes/skip_list/outside.hpp>
#include <pmlab/indexes/skip_list/recovery.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::indexes::detail::skip_list {

// One node in four has a tower node in level 1, one in sixteen another one in level 2, and so on. A tower node is a
// node like any other: its lists are chains (skip_list_chain.hpp), it is allocated from the same slabs, and it is
// retired in the same way.
//
// Invariants:
//   W1  A tower node is linked when the node below it is linked, durably; the node below it is marked only when the
//       tower node is marked, durably: except the entry itself, which is marked first. (The tower of an entry that
//       stays may be removed alone: then its tower nodes are moved, by another tower in its place.)
//   W2  No thread descends from a marked tower node. So a thread that descends arrives at a tower node that was not
//       retired when the thread read it, or at an entry, which may be marked but is not freed before its tower nodes
//       are marked.
//   W3  The same holds after a crash: tower nodes may be missing, or lead to a marked entry; no unmarked one leads to a
//       node that was reused. The entry and the tower nodes of an interrupted erase are removed when the slab of the
//       entry is recovered.
//   W4  The height of an entry's tower is computed from its key and, in a durable medium, its place.
//   W5  Damaged towers cost time, and hide only entries that the list itself has lost: no walk over tower nodes leaves
//       the medium, continues if keys descend, or descends to a node that is not of the level below and of the same
//       key; it continues at the head of that level.
//
// After an open the set of free nodes is unknown. It is computed slab by slab, when nodes are needed: a node is in use
// if the search for its key in the list of its level ends at this very node. Opening does not walk the list, so it may
// have lost a link: slab recovery frees no entry that is not deleted, unless it finds exactly the state of an insert
// that was interrupted before its link (K5). The others stay in place: `check` counts them, `salvage` reads them.
template <class Medium>
class persistent_towers {
  static constexpr std::size_t top = 12;

 public:
  static constexpr std::size_t levels_in_medium = top + 1;
  static constexpr bool zeroed_slabs = true;
  static constexpr bool recovers_all_slabs = false;
  using body_type = body<Medium, levels_in_medium>;
  using slab_type = typename body_type::slab_type;
  using place = typename chain<Medium>::place;

  explicit persistent_towers(body_type& b)
      : body_(b),
        old_(slabs_from<slab_type>(b.medium, b.root->slabs.load(std::memory_order_acquire))),
        claimed_((old_.slabs().size() * slab_type::capacity + 63) / 64),
        recovered_(old_.slabs().size()) {
    // The newest slab, with most of the free nodes, is first.
    b.nodes.leave_unrecovered(old_.slabs());
  }

  // A node at or below `key`, which may be marked; or the head.
  [[nodiscard]] node& floor(key_type key) const { return descend(0, key); }

  static constexpr std::size_t most_at_once = 16;
  void floors(std::span<const key_type> keys, std::span<node*> out) const {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      out[i] = &floor(keys[i]);
      __builtin_prefetch(out[i]);
    }
  }

  static constexpr std::size_t most_ahead = 128;
  void look_ahead(key_type /*key*/, std::size_t /*count*/) const noexcept {}

  // The tower nodes of a tower under construction, not part of any list yet.
  struct tower_nodes {
    std::size_t height = 0;
    std::array<node*, top> of_level{};
  };

  // Without a lock: allocation may judge slabs. No space: the tower is lower than it could be.
  template <class Allocate>
  [[nodiscard]] tower_nodes prepare(key_type key, const node& n, Allocate&& allocate) const {
    tower_nodes made;
    for (const std::size_t height = height_of(key, n); made.height < height; ++made.height) {
      made.of_level[made.height] = allocate();
      if (made.of_level[made.height] == nullptr) break;
    }
    return made;
  }

  // Puts the tower into its lists. REQUIRES: the lock of `n`, which is not marked.
  void put(key_type key, node& n, tower_nodes& made) {
    node* below_it = &n;
    std::size_t level = 1;
    for (; level <= made.height; ++level) {
      node& tower_node = *made.of_level[level - 1];
      body_.nodes.sign(tower_node, level + 1);
      tower_node.key.store(key, std::memory_order_relaxed);
      tower_node.value.store(body_.list.word_of(below_it), std::memory_order_relaxed);
      place at = place_of(level, key);
      while (!is_at(at, key) && !body_.list.link(at, tower_node)) at = place_of(level, key);
      // Another node of this key, which is being erased, has its tower node there.
      if (is_at(at, key)) break;
      below_it = &tower_node;
    }
    used(made, level - 1);
  }

  // Frees the nodes that `put` has not used.
  void put_away(tower_nodes& made) {
    for (std::size_t i = 0; i < made.height; ++i)
      if (made.of_level[i] != nullptr) body_.nodes.give_back(*made.of_level[i]);
  }

  // Removes the tower of `n`. REQUIRES: its lock.
  void remove(key_type key, node& n) {
    for (std::size_t level = height_of(key, n); level > 0; --level) {
      const place at = place_of(level, key);
      if (!is_at(at, key) || !leads_to(*at.right, level, n)) continue;
      node& tower_node = *at.right;
      const bool is_ours = claim(tower_node);
      body_.list.mark_deleted(tower_node);
      node& before = *place_of(level, key).left;
      if (is_ours) body_.retire(tower_node, before);
    }
  }

  // With the lock of `of` held, which is not marked: gives it a tower of other tower nodes. False: not enough of them;
  // nothing has changed. A crash may leave a part of either tower (W3).
  bool renew(key_type key, node& of, tower_nodes& made) {
    if (made.height < height_of(key, of)) return false;
    remove(key, of);
    put(key, of, made);
    return true;
  }

  // True if `tower_node`, whose level this is, is in its list and not marked.
  [[nodiscard]] bool is_in_list(const node& tower_node, std::uint64_t level) const {
    return level <= levels_in_medium &&
           place_of(level - 1, tower_node.key.load(std::memory_order_acquire)).right == &tower_node;
  }

  // The level of a node; 1: an entry. A node in no list may have any.
  [[nodiscard]] std::uint64_t level_of(const node& n) const noexcept {
    return origin::of(n.level.load(std::memory_order_acquire), body_.list.word_of(&n)).level;
  }

  // True if the caller, who unlinks `n`, must retire it. For a slab that is not recovered yet, slab recovery may have
  // to do it.
  bool claim(const node& n) {
    const std::size_t number = old_.number_of(&n);
    if (number == old_.none || recovered_[number / slab_type::capacity].load(std::memory_order_acquire)) return true;
    const std::uint64_t bit = std::uint64_t{1} << number % 64;
    return (claimed_[number / 64].fetch_or(bit, std::memory_order_acq_rel) & bit) == 0;
  }

  // Adds the free nodes of a slab to `found`, and removes nodes that a crash left half erased. REQUIRES: a guard, and
  // no locks.
  void recover_slab(slab_type& s, std::vector<node*>& found) {
    for (node& n : s.nodes) {
      const std::uint64_t level = level_of(n);
      if (level > levels_in_medium) continue;
      const bool is_free = level == 0 ? claim(n) : level == 1 ? recover_entry(n) : recover_node(n, level - 1);
      if (is_free) keep(found, n);
    }
    recovered_[old_.number_of(s.nodes.data()) / slab_type::capacity].store(true, std::memory_order_release);
  }

  // Its nodes go with the entries.
  static constexpr void shrink(std::size_t /*entries*/) noexcept {}

  [[nodiscard]] std::uint64_t levels() const {
    std::uint64_t level = top;
    while (level > 0 && target_of(body_.root->heads[level].next.load(std::memory_order_acquire)) == 0) --level;
    return level;
  }
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return claimed_.size() * sizeof claimed_[0] + recovered_.size() + old_.slabs().size() * 3 * sizeof(void*);
  }

  // C1 of every level; every tower node leads to one of its key below it.
  template <class Table>
  void check(const Table& table, check_report& report) const {
    for (std::size_t level = 1; level <= top; ++level) {
      std::size_t deleted = 0;
      bool first = true;
      key_type last = 0;
      for (link_word link = body_.root->heads[level].next.load(std::memory_order_acquire); target_of(link) != 0;) {
        const node* const tower_node = body_.list.unchecked_target(link);
        const auto wrong = [&](const std::string& what) { report.add(what + " in level " + std::to_string(level)); };
        if (table.number_of(tower_node) == Table::none) return wrong("C1: a link leads to no node");
        link = tower_node->next.load(std::memory_order_acquire);
        if (is_marked(link)) {
          if (++deleted > table.slabs().size() * slab_type::capacity)
            return wrong("C1: a circle of deleted tower nodes");
          continue;
        }
        const key_type key = tower_node->key.load(std::memory_order_acquire);
        if (!first && key <= last) return wrong("C1: keys do not ascend");
        first = false;
        last = key;
        const node* const below_it = body_.list.unchecked_target(tower_node->value.load(std::memory_order_acquire));
        if (table.number_of(below_it) == Table::none) return wrong("W1: a tower node leads to no node");
        if (level_of(*tower_node) != level + 1 || level_of(*below_it) != level ||
            below_it->key.load(std::memory_order_acquire) != key)
          return wrong("W1: a tower node leads to another's");
        if (level > 1 && is_marked(below_it->next.load(std::memory_order_acquire)))
          return wrong("W1: a tower node leads to a deleted one");
      }
    }
  }

 private:
  [[nodiscard]] static bool is_at(const place& at, key_type key) noexcept {
    return at.right != nullptr && at.right->key.load(std::memory_order_acquire) == key;
  }
  [[nodiscard]] bool is_head(const node& n) const noexcept {
    return &n >= body_.root->heads.data() && &n < body_.root->heads.data() + levels_in_medium;
  }

  [[nodiscard]] std::size_t height_of(key_type key, const node& n) const noexcept {
    // In DRAM a node's word is an address, another one in each run, and figures must be reproducible: only the key
    // decides.
    const std::uint64_t of_place = media::is_durable(body_.medium) ? body_.list.word_of(&n) : 0;
    std::uint64_t mix = (key ^ of_place) * golden_ratio;
    mix = (mix ^ mix >> 32) * 0xd6e8feb86659fd93U;
    return std::min(top, static_cast<std::size_t>(std::countr_zero(mix ^ mix >> 32)) / 2);
  }

  // The last one in `level` at or below `key` that is not marked, or where the way down ended; or the level's head.
  [[nodiscard]] node& descend(std::size_t level, key_type key) const {
    node* at = &body_.root->heads[top];
    for (std::size_t here = top; here > level; --here) {
      at = &last_up_to(*at, key);
      node* const down = is_head(*at) ? nullptr : below(*at, here);
      at = down == nullptr ? &body_.root->heads[here - 1] : down;
    }
    return level == 0 ? *at : last_up_to(*at, key);
  }

  [[nodiscard]] node& last_up_to(node& from, key_type key) const {
    node* last = &from;
    ascent keys;
    for (link_word link = from.next.load(std::memory_order_acquire); body_.list.can_follow(link);) {
      node& n = *body_.list.unchecked_target(link);
      media::annotate_read(body_.medium, n);
      link = n.next.load(std::memory_order_acquire);
      const key_type here = n.key.load(std::memory_order_acquire);
      if (here > key || !keys.goes_to(here)) break;
      if (!is_marked(link)) last = &n;
    }
    return *last;
  }

  // One level down from a tower node in the list of `level`. nullptr: the tower is damaged (W5).
  [[nodiscard]] node* below(const node& tower_node, std::size_t level) const noexcept {
    const link_word down = tower_node.value.load(std::memory_order_acquire);
    if (target_of(down) != down || !body_.list.can_follow(down)) return nullptr;
    node* const n = body_.list.unchecked_target(down);
    const bool is_of_it = level_of(*n) == level &&
                          n->key.load(std::memory_order_acquire) == tower_node.key.load(std::memory_order_acquire);
    return is_of_it ? n : nullptr;
  }

  // One of `level` below `key` that is not marked now, or the head.
  [[nodiscard]] node& before(std::size_t level, key_type key) const {
    while (key > 0) {
      node& n = descend(level, key - 1);
      if (is_head(n)) break;
      if (!is_marked(n.next.load(std::memory_order_acquire))) return n;
      key = n.key.load(std::memory_order_acquire);
    }
    return body_.root->heads[level];
  }

  [[nodiscard]] place place_of(std::size_t level, key_type key) const {
    place at;
    while (!body_.list.find_place(before(level, key), key, at)) {
    }
    return at;
  }

  [[nodiscard]] bool leads_to(const node& tower_node, std::size_t level, const node& n) const noexcept {
    const node* at = &tower_node;
    for (; level > 0 && at != nullptr; --level) at = below(*at, level);
    return at == &n;
  }

  static void used(tower_nodes& made, std::size_t count) noexcept {
    std::fill_n(made.of_level.begin(), count, nullptr);
  }

  // Without memory the node is lost until the next open: the caller may be an insert that has linked its entry already.
  static void keep(std::vector<node*>& found, node& n) noexcept {
    try {
      found.push_back(&n);
    } catch (const std::bad_alloc&) {
    }
  }

  [[nodiscard]] bool is_claimed(const node& n) const noexcept {
    const std::size_t number = old_.number_of(&n);
    return (claimed_[number / 64].load(std::memory_order_acquire) >> number % 64 & 1) != 0;
  }

  bool recover_entry(node& n) {
    const key_type key = n.key.load(std::memory_order_acquire);
    bool was_deleted = false;
    {
      // While it is held, no thread erases this entry.
      const std::scoped_lock lock(body_.lock_of(n));
      if (is_claimed(n)) return false;
      const place at = place_of(0, key);
      if (at.right == &n) return false;
      const link_word link = n.next.load(std::memory_order_acquire);
      was_deleted = is_marked(link);
      // Between these two neighbours it would be linked, or another of its key has been linked since: it never was
      // (K5).
      const bool was_cut_off =
          at.right != nullptr && (is_at(at, key) || target_of(link) == body_.list.word_of(at.right));
      if ((!was_deleted && !was_cut_off) || !claim(n)) return false;
      remove(key, n);
    }
    // One that was never deleted was never linked either: no reader can use it.
    if (!was_deleted) return true;
    body_.retire(n, *place_of(0, key).left);
    return false;
  }

  bool recover_node(node& n, std::size_t level) {
    const key_type key = n.key.load(std::memory_order_acquire);
    if (is_claimed(n) || place_of(level, key).right == &n || !claim(n)) return false;
    if (!is_marked(n.next.load(std::memory_order_acquire))) return true;
    body_.retire(n, *place_of(level, key).left);
    return false;
  }

  body_type& body_;
  node_table<slab_type> old_;
  std::vector<std::atomic<std::uint64_t>> claimed_;  // nodes of `old_` that a thread retires or has found free
  std::vector<std::atomic<bool>> recovered_;         // slabs of `old_`
};

}  // namespace pmlab::indexes::detail::skip_list
