// FAST-FAIR: a B+tree that shifts entries in place instead of logging, after Hwang et al., FAST'18 [FAST-FAIR].
//
// Use it for ordered data that must be available as soon as the pool is open. For point operations alone CCEH is
// faster.
//
// Thread safety: any operation from any number of threads (`check`, `stats`, `size`, `for_each`: no concurrent writer).
// Progress: readers write nothing shared; they wait only while a writer changes a node that they read (or one that
// shares its version lock). Writers lock one node at a time; an erase that joins two nodes up to four.
//
// Durability: the result of an operation survives a crash (strict durable linearizability). A writer makes its change
// durable before it releases the node's version lock, and a reader uses data of a node only if that lock was free and
// unchanged while it read: it cannot have read anything that a crash undoes.
//
// Layout (medium): named root -> root node. Nodes are 512 bytes (fast_fair/node.hpp; changes.hpp has the changes of a
// locked one); every level is a list by `sibling`, in ascending order of keys. DRAM holds only the version locks:
// opening reads one node for each level. Retired nodes wait in a queue that begins in the leftmost leaf
// (detail/retired_nodes.hpp).
//
// Differences from the paper: of equal neighbouring *keys* the last one counts, where the paper compares neighbouring
// pointers; so every key and value is allowed, a node that a crash left in mid-shift is as valid as any other, erase is
// one store that leaves a hole, and insert shifts to the nearest hole only, to the side where that changes fewer lines.
// Each node stores its high key; a split publishes new node, sibling link and high key atomically, and the moved
// entries are free in the old node because they are beyond the high key; in the new node it leaves a hole before each
// entry. Readers validate versions instead of following a direction counter.
//
// Space: two neighbours under one parent that fit into one node are joined (fast_fair/join.hpp), empty ones at
// once; a root with one child is removed. In place: the right node's entries are copied behind those of the left one,
// beyond its high key, and become visible when one publication gives the left one the right one's high key and sibling.
// If the left one's holes are elsewhere, a new node with the entries of both replaces the two.
//
// A pool that was damaged from outside: `open` follows the leftmost node of each level and the queue of retired nodes;
// operations throw pmlab::error at an invalid link; `check` validates the rest. `salvage` reads the remaining entries
// (fast_fair/salvage.hpp).
//
// Invariants (N1, N2: fast_fair/node.hpp; Q1 to Q3: detail/retired_nodes.hpp):
//   T1  A node's entries are at or above the high key of the node before it, and below its own.
//   T2  A level is complete by its sibling links alone. A node that its parent does not know yet (a crash, or a split
//       under way) is found through its left neighbour; the next writer that follows the link adds it to the parent.
//   T3  A linked node points to linked nodes only, except while its lock is held: a node is retired by one publication
//       that unlinks it from its left neighbour, with the locks of both and of the parent held, after its removal from
//       the parent. A writer that adds a child to a parent holds the parent's lock and checks whether the child is
//       retired.
//   T4  A retired node stays unchanged, and its block is kept until every operation that began before has ended
//       (epochs). A reader in it reads a state that was current during its own operation, and continues to the right. A
//       writer detects the retirement and retries from the root.
//   T5  A node's low key never changes. The leftmost node of a level is retired only as a root.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/count_entries.hpp>
#include <pmlab/indexes/detail/load_into.hpp>
#include <pmlab/indexes/detail/range_by_scan.hpp>
#include <pmlab/indexes/detail/replace_value.hpp>
#include <pmlab/indexes/fast_fair/changes.hpp>
#include <pmlab/indexes/fast_fair/check.hpp>
#include <pmlab/indexes/fast_fair/join.hpp>
#include <pmlab/indexes/fast_fair/leaf.hpp>
#include <pmlab/indexes/fast_fair/node.hpp>
#include <pmlab/indexes/fast_fair/row.hpp>
#include <pmlab/indexes/fast_fair/salvage.hpp>
#include <pmlab/indexes/fast_fair/searched_nodes.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pmlab::indexes {

// B+tree with sorted nodes [FAST-FAIR]. See the file's prologue for its use, thread safety, durability and layout.
// Operations: O(log n); a scan of m entries O(log n + m).
template <media::medium Medium>
class fast_fair : detail::fast_fair::node_changes<Medium> {
  using changes = detail::fast_fair::node_changes<Medium>;
  using changes::medium_;
  using node = detail::fast_fair::node;
  using node_pointer = media::pointer<node>;
  using publication = typename Medium::publication;
  using nodes = detail::fast_fair::searched_nodes<Medium>;
  using locked_node = typename nodes::locked_node;
  using unannounced = detail::fast_fair::unannounced;

 public:
  static constexpr std::string_view layout_name = "fast_fair";
  static constexpr std::uint64_t layout_version = 1;

  // Opens the tree `name` in `medium`, or creates an empty one. Takes about the same time for a tree of any size.
  // Throws pmlab::error: the name belongs to another layout, the root, the leftmost node of a level or the queue of
  // retired nodes is corrupt, no space for the first node. `medium` must outlive the index.
  static fast_fair open(Medium& medium, std::string_view name = layout_name) { return fast_fair(medium, name); }

  // Calls function(key, value) for the readable entries of a damaged tree: through its links and through its inner
  // nodes, and for leaves that neither reaches, from the whole medium, if its bounds are known. Changes nothing. If a
  // key occurs twice, the first one is right, as far as that can be determined. Throws pmlab::error at the end if some
  // entries may be missing or erased, with the damaged places.
  template <class Function>
  static void salvage(Medium& medium, std::string_view name, Function&& function) {
    const std::uint64_t root =
        medium.named_root(name, layout_name, layout_version).word->load(std::memory_order_acquire);
    const std::string problems = detail::fast_fair::salvage(medium, root, function);
    if (!problems.empty())
      throw error("this FAST-FAIR tree is corrupt: " + problems, "restore the pool from a copy, if there is one");
  }

  fast_fair(const fast_fair&) = delete;
  fast_fair& operator=(const fast_fair&) = delete;
  ~fast_fair() = default;

  // Adds (key, value). inserted; exists: the key is present and was left unchanged; full: no space, nothing changed.
  // Durable on return. One flush and fence for each line that is shifted; a split publishes one node.
  outcome insert(key_type key, value_type value) {
    return put(key, value, [](std::atomic<value_type>&) { return outcome::exists; });
  }

  // Adds (key, value) or replaces the value of `key`. inserted, updated or full. Durable on return.
  outcome upsert(key_type key, value_type value) {
    return put(key, value,
               [&](std::atomic<value_type>& stored) { return detail::replace_value(medium_, stored, value); });
  }

  // Replaces the value of `key`. updated or absent. Durable on return; one flush and one fence.
  outcome update(key_type key, value_type value) {
    const auto guard = nodes_.pin();
    return change(key, [&](node& leaf) {
      std::atomic<value_type>* const stored = detail::fast_fair::stored_value(leaf, key);
      return stored == nullptr ? outcome::absent : detail::replace_value(medium_, *stored, value);
    });
  }

  // Removes `key`. erased or absent. Durable on return; one flush and one fence (more only where holes precede the
  // entry). The slot is free for other keys of the leaf. Where neighbours became sparse, two of them are joined.
  outcome erase(key_type key) {
    const auto guard = nodes_.pin();
    bool sparse = false;
    const outcome answer = change(key, [&](node& leaf) {
      const outcome removed = this->remove(leaf, key);
      sparse = removed == outcome::erased && detail::fast_fair::looks_for_a_neighbour(leaf);
      return removed;
    });
    if (sparse) detail::fast_fair::joiner<Medium>(nodes_).join_around(key);
    return answer;
  }

  // Many entries at once, see loadable_index: leaves that are filled beforehand, up to fourteen of them linked by one
  // publication.
  std::size_t load(std::span<const entry> ascending) {
    return detail::load_rows(*this, ascending, [this](std::span<const entry> rest) { return load_row(rest); });
  }

  // The value of `key`. Reads one node per level.
  std::optional<value_type> find(key_type key) {
    const auto guard = nodes_.pin();
    const auto parts = nodes_.parts_for_searches();
    node* n = nodes_.root();
    for (std::uint8_t descents = 0;;) {
      std::optional<value_type> found;
      if (nodes::step_towards(parts, key, n, found, descents)) return found;
    }
  }

  // values[i] := find(keys[i]). The searches go down together, so that the cache misses of a level overlap.
  void find_batch(std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
    assert(keys.size() == values.size());
    const auto guard = nodes_.pin();
    const auto parts = nodes_.parts_for_searches();
    std::array<node*, batch_width> at;
    std::array<std::uint8_t, batch_width> descents;
    for (std::size_t done = 0; done < keys.size(); done += batch_width) {
      const std::size_t width = std::min(batch_width, keys.size() - done);
      at.fill(nullptr);
      std::fill_n(at.begin(), width, nodes_.root());
      descents.fill(0);
      for (std::size_t searching = width; searching > 0;)
        for (std::size_t i = 0; i < width; ++i) {
          if (at[i] == nullptr) continue;
          if (nodes::step_towards(parts, keys[done + i], at[i], values[done + i], descents[i])) {
            at[i] = nullptr;
            --searching;
          } else {
            media::prefetch(medium_, *at[i]);
          }
        }
    }
  }

  // Fills `out` with the entries whose keys are >= from, ascending; returns their number. Each leaf is read atomically;
  // entries that are present during the whole scan are never missed.
  std::size_t scan(key_type from, std::span<entry> out) {
    const auto guard = nodes_.pin();
    std::size_t count = 0;
    node* leaf = &nodes_.leaf_of(from);
    while (count < out.size()) {
      const sync::version_lock& lock = nodes_.lock_of(leaf);
      const std::uint64_t version = lock.read_begin();
      const node_pointer next = leaf->sibling.load(std::memory_order_acquire);
      if (next) media::prefetch(medium_, medium_.resolve(next), sizeof(node));
      media::annotate_read(medium_, *leaf);
      const key_type high = leaf->high_key.load(std::memory_order_acquire);
      const std::size_t in_leaf = detail::fast_fair::copy_entries(*leaf, from, out.subspan(count));
      if (!lock.read_validate(version)) continue;
      count += in_leaf;
      if (!next) break;
      leaf = nodes::sibling_at(medium_, next, high);
    }
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
    nodes_.for_each_from(nodes_.leftmost_of(0), [&](node& leaf) {
      for (std::size_t i = 0; i < detail::fast_fair::capacity; ++i)
        if (!leaf.is_free(i)) function(leaf.key_at(i), leaf.value_at(i));
      if (!leaf.sibling.load(std::memory_order_acquire) && leaf.greatest_present.load(std::memory_order_acquire) != 0)
        function(greatest_key, leaf.greatest_value.load(std::memory_order_acquire));
    });
  }

  // For callers whose values have a check of their keys: calls right(key, value, is_entry) for each slot of a leaf.
  // Where it returns another key, which is in order there, the slot has this key from now on. Durable on return.
  // Returns how many slots were changed. Follows no link that cannot name a leaf, and ends there. REQUIRES: no other
  // operation.
  template <class Right>
  std::size_t mend_keys(Right&& right) {
    std::size_t changed = 0;
    key_type low = 0;
    for (node_pointer at = medium_.locate(nodes_.leftmost_of(0)); media::can_name(medium_, at);) {
      node& leaf = *medium_.resolve(at);
      if (!leaf.is_leaf() || !leaf.ends_above(low)) break;
      const key_type high = leaf.high_key.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < detail::fast_fair::capacity; ++i) {
        const std::optional<key_type> key = right(leaf.key_at(i), leaf.value_at(i), !leaf.is_free(i));
        if (!key || *key >= leaf.key_after(i) || *key >= high || (i > 0 && leaf.key_at(i - 1) > *key)) continue;
        leaf.key(i).store(*key, std::memory_order_release);  // (K1)
        // (K1) < (K2): one store, so a crash leaves the slot as it was, or mended.
        media::persist(medium_, leaf.lines[i / detail::entries_per_line]);  // (K2)
        ++changed;
      }
      low = high;
      at = leaf.sibling.load(std::memory_order_acquire);
    }
    return changed;
  }

  // Entries in the tree; walks its leaves.
  [[nodiscard]] std::uint64_t size() const { return detail::count_entries(*this); }

  // depth = levels; nodes = all nodes of the tree; load factor = entries / slots of leaves. The bytes in the medium
  // include retired nodes.
  [[nodiscard]] index_stats stats() const {
    return nodes_.stats(size(), nodes_.levels(), detail::fast_fair::capacity,
                        [this](std::uint64_t level) { return nodes_.leftmost_of(level); });
  }

  // Checks every invariant above. A node that its parent does not know (T2) is no violation.
  [[nodiscard]] check_report check() const {
    const node_pointer root(nodes_.root_word().load(std::memory_order_acquire));
    return detail::fast_fair::checker<Medium>(medium_).run(root, nodes_.levels());
  }

 private:
  static constexpr key_type greatest_key = detail::fast_fair::greatest_key;
  static constexpr std::size_t batch_width = 16;

  fast_fair(Medium& medium, std::string_view name)
      : changes(medium), nodes_(medium, *medium.named_root(name, layout_name, layout_version).word) {}

  // ---- writing ----

  // Runs operation(leaf) with the leaf of `key` locked, then adds to a parent the link that the descent followed (T2).
  // REQUIRES: a guard.
  template <class Operation>
  auto change(key_type key, Operation&& operation) {
    locked_node leaf(nodes_, key, 0);
    const auto result = operation(*leaf);
    leaf.unlock();
    announce(leaf.seen());
    return result;
  }

  // insert and upsert: `on_existing(value word)` handles a key that is present.
  template <class OnExisting>
  outcome put(key_type key, value_type value, OnExisting&& on_existing) {
    return nodes_.after_reclaiming([&] { return put_if_space(key, value, on_existing); });
  }

  template <class OnExisting>
  outcome put_if_space(key_type key, value_type value, OnExisting& on_existing) {
    const auto guard = nodes_.pin();
    for (;;) {
      unannounced split_off;
      const std::optional<outcome> answer = change(key, [&](node& leaf) -> std::optional<outcome> {
        if (auto* const stored = detail::fast_fair::stored_value(leaf, key)) return on_existing(*stored);
        return this->add(leaf, key, value, split_off);
      });
      if (answer) return *answer;
      announce(split_off);
    }
  }

  // Adds the first of these entries, as many as fit into a row between two leaves; returns their number. 0: they must
  // go into an existing leaf, or there is no space.
  std::size_t load_row(std::span<const entry> ascending) {
    const auto guard = nodes_.pin();
    const key_type first = ascending.front().key;
    detail::fast_fair::leaf_row row;
    unannounced seen;
    {
      const locked_node at(nodes_, first, 0);
      node& leaf = *at;
      seen = at.seen();
      const key_type bound = leaf.high_key.load(std::memory_order_relaxed);
      if (!detail::fast_fair::row_may_follow(leaf, first)) return 0;
      publication change(medium_);
      constexpr std::size_t most = detail::fast_fair::leaf_row::most_leaves * detail::fast_fair::loaded_entries;
      row = detail::fast_fair::make_row(medium_, change, detail::fit_into_row(ascending, most, bound - 1));
      if (row.count == 0) return 0;
      detail::fast_fair::take_place_after(row.last(), leaf);
      for (std::size_t i = 0; i < row.count; ++i) media::flush(medium_, *row.leaves[i]);  // (W1)
      medium_.fence();                                                                    // (W2)
      media::publish_store(change, leaf.sibling, medium_.locate(row.leaves.front()));     // (W3)
      media::publish_store(change, leaf.high_key, first);                                 // (W4)
      change.commit();
      // (W1) < (W2) < (W3), (W4): as (S1) < (S2), (S3); so a crash leaves all of the row or none of it.
    }
    announce(seen);
    // Others may have changed the leaves since; their ranges of keys stay.
    for (std::size_t i = 0; i < row.count; ++i) announce({row.low_keys[i], medium_.locate(row.leaves[i]), 1});
    return row.entries;
  }

  // Adds `link.child` to its parent, if it is not there yet and if the child was not joined with its left neighbour
  // since. Without space it stays as it is: the sibling links reach every node.
  void announce(unannounced link) {
    if (link.parent_level >= detail::fast_fair::most_levels) nodes::throw_damaged();
    while (link.parent_level != 0) {
      if (link.parent_level >= nodes_.levels() && !grow(link)) return;
      unannounced split_off;
      {
        locked_node parent(nodes_, link.separator, link.parent_level);
        if (!parent) continue;                               // the root was removed since
        if (medium_.resolve(link.child)->is_gone()) return;  // T3
        if (this->add_child(*parent, link, split_off)) return;
      }
      announce(split_off);
    }
  }

  // Puts a new root above the old one if there is no level `link.parent_level` yet. False: no space, or the child was
  // retired with its whole level, a root with one child: a root over a missing level would be corrupt, and there is no
  // parent to update.
  bool grow(const unannounced& link) {
    const auto guard = nodes_.lock_root();
    if (link.parent_level < nodes_.levels()) return true;
    if (link.parent_level > nodes_.levels()) return false;
    publication change(medium_);
    auto* const made = media::create<node>(change);
    if (made == nullptr) return false;
    made->level.store(link.parent_level, std::memory_order_relaxed);
    made->first_child.store(node_pointer(nodes_.root_word().load(std::memory_order_relaxed)),
                            std::memory_order_relaxed);
    media::persist(medium_, *made);                                 // (R1)
    change.store(nodes_.root_word(), medium_.locate(made).word());  // (R2)
    // (R1) < (R2): the root never names memory that is not durable. The new root knows its first child; `announce`
    // continues and adds the second.
    change.commit();
    return true;
  }

  nodes nodes_;
};

}  // namespace pmlab::indexes
