// wB+-tree: a B+tree whose nodes change by one store of a word that sorts their entries, after Chen and Jin, VLDB'15
// [WB-TREE].
//
// Use it for ordered data on a device with lines of 256 bytes, if the tree must be available as soon as the pool is
// open: a node is one such line. A search reads one for each level, an insert flushes two lines of one at most, and
// scans are faster than FAST-FAIR's there. In DRAM, FAST-FAIR's larger nodes are faster.
//
// Thread safety: any operation from any number of threads (`check`, `stats`, `size`, `for_each`: no concurrent writer).
// Progress: readers write nothing shared; they wait only while a writer changes a node that they read (or one that
// shares its version lock). Writers lock one node; a split two, a join three.
//
// Durability: the result of an operation survives a crash (strict durable linearizability). A writer makes its change
// durable before it releases the node's version lock, and a reader uses data of a node only if that lock was free and
// unchanged while it read: it cannot have read anything that a crash undoes.
//
// Layout (medium): named root -> root node. Nodes are 256 bytes (wb_tree/node.hpp), inner nodes, too. Every level is a
// list by `sibling`, in ascending order of keys. DRAM holds only the version locks: opening reads one node for each
// level. Retired nodes wait in a queue that begins in the leftmost leaf (detail/retired_nodes.hpp).
//
// Differences from the paper: of its two commit words this is the slot array of one word, with four bits for each slot,
// so that a node of 14 entries needs no bitmap beside it, and no bit for a slot array that is not valid: every state is
// sorted, a change commits with one store, and no crash leaves anything to rebuild. Two of the slots share the commit
// word's line. Splits are not logged: one publication allocates the right node, cuts the left one off, and adds the
// right one to the parent, so that no crash and no reader finds half of a split. Inner nodes keep the least key of each
// child instead of separators between them. Readers and writers run concurrently; sparse neighbours are joined.
//
// Space: two neighbours under one parent with few entries are joined: the right node's entries are copied into free
// slots of the left one, where they do not count, until one publication gives it the new slot array and the right one's
// high key and sibling, and takes the right one out of the parent. A root with one child is removed.
//
// A pool that was damaged from outside: `open` follows the leftmost node of each level and the queue of retired nodes;
// operations throw pmlab::error at an invalid link; `check` validates the rest. `salvage` reads the remaining entries
// (wb_tree/salvage.hpp).
//
// Invariants (N1, N2: wb_tree/node.hpp; Q1 to Q3: detail/retired_nodes.hpp):
//   T1  A node's entries are at or above its low key, which the parent has, and below its high key, which is the low
//       key of the next node.
//   T2  The children of a level are exactly the nodes of the list of the next one, in the same order. Whatever changes
//       both is one publication, with the locks of the parent and of the children held.
//   T3  A node's level and low key never change. The leftmost node of a level is retired only as a root.
//   T4  A retired node is unlinked by the publication that marks it. A thread that finds one has read its way there
//       before: it begins again at the root, and its guard keeps the block (epochs).
//   T5  The root's word changes with its mutex held until the publication has returned, so that no two publications
//       under way store it.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/batches.hpp>
#include <pmlab/indexes/detail/load_into.hpp>
#include <pmlab/indexes/detail/range_by_scan.hpp>
#include <pmlab/indexes/detail/replace_value.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/wb_tree/check.hpp>
#include <pmlab/indexes/wb_tree/join.hpp>
#include <pmlab/indexes/wb_tree/node.hpp>
#include <pmlab/indexes/wb_tree/row.hpp>
#include <pmlab/indexes/wb_tree/salvage.hpp>
#include <pmlab/indexes/wb_tree/searched_nodes.hpp>
#include <pmlab/indexes/wb_tree/slot_array.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/several_locks.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pmlab::indexes {

// B+tree with nodes of one device line [WB-TREE]. See the file's prologue for its use, thread safety, durability and
// layout. Operations: O(log n); a scan of m entries O(log n + m).
template <media::medium Medium>
class wb_tree {
  using node = detail::wb_tree::node;
  using slot_array = detail::wb_tree::slot_array;
  using node_pointer = media::pointer<node>;
  using publication = typename Medium::publication;
  using nodes = detail::wb_tree::searched_nodes<Medium>;
  using search = typename nodes::search;
  using locked_node = typename nodes::locked_node;

 public:
  static constexpr std::string_view layout_name = "wb_tree";
  static constexpr std::uint64_t layout_version = 1;

  // Opens the tree `name` in `medium`, or creates an empty one. Takes about the same time for a tree of any size.
  // Throws pmlab::error: the name belongs to another layout, the root, the leftmost node of a level or the queue of
  // retired nodes is corrupt, no space for the first node. `medium` must outlive the index.
  static wb_tree open(Medium& medium, std::string_view name = layout_name) { return wb_tree(medium, name); }

  // Calls function(key, value) for the readable entries of a damaged tree, ascending: through its inner nodes, and
  // through the links of its leaves where these lead further. Changes nothing. Throws pmlab::error at the end if some
  // entries may be missing, with the damaged places.
  template <class Function>
  static void salvage(Medium& medium, std::string_view name, Function&& function) {
    const std::uint64_t root =
        medium.named_root(name, layout_name, layout_version).word->load(std::memory_order_acquire);
    const std::string problems = detail::wb_tree::salvage(medium, root, function);
    if (!problems.empty())
      throw error("this wB+-tree is corrupt: " + problems, "restore the pool from a copy, if there is one");
  }

  wb_tree(const wb_tree&) = delete;
  wb_tree& operator=(const wb_tree&) = delete;
  ~wb_tree() = default;

  // Adds (key, value). inserted; exists: the key is present and was left unchanged; full: no space, nothing changed.
  // Durable on return. At most two flushes and two fences, unless a node is split.
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
    const locked_node leaf(nodes_, key, 0);
    const auto slot = (*leaf).slot_of((*leaf).array(), key);
    return slot ? detail::replace_value(medium_, (*leaf).entries[*slot].value, value) : outcome::absent;
  }

  // Removes `key`. erased or absent. Durable on return; one flush and one fence. Where neighbours became sparse, two of
  // them are joined.
  outcome erase(key_type key) {
    const auto guard = nodes_.pin();
    {
      const locked_node leaf(nodes_, key, 0);
      const slot_array order = (*leaf).array();
      const std::size_t count = (*leaf).count_up_to(order, key);
      if (count == 0 || (*leaf).key_at(order[count - 1]) != key) return outcome::absent;
      detail::wb_tree::erase_from(medium_, *leaf, order, count - 1);
      if (!detail::wb_tree::looks_for_a_neighbour(order.count() - 1)) return outcome::erased;
    }
    detail::wb_tree::joiner<Medium>(nodes_).join_around(key);
    return outcome::erased;
  }

  // Many entries at once, see loadable_index: leaves that are filled beforehand, as many as their parent has room for
  // linked by one publication.
  std::size_t load(std::span<const entry> ascending) {
    return detail::load_rows(*this, ascending, [this](std::span<const entry> rest) { return load_row(rest); });
  }

  // The value of `key`. Reads one device line per level.
  std::optional<value_type> find(key_type key) {
    const auto guard = nodes_.pin();
    const auto parts = nodes_.parts_for_searches();
    std::optional<value_type> found;
    for (search at{nodes_.root()}; !nodes::step_to_value(parts, key, at, found);) {
    }
    return found;
  }

  // values[i] := find(keys[i]). The searches go down together, so that the cache misses of a level overlap.
  void find_batch(std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
    const auto guard = nodes_.pin();
    const auto parts = nodes_.parts_for_searches();
    detail::in_batches<batch_width>(keys, values, [&](const auto some, const auto found) {
      std::array<search, batch_width> at;
      at.fill(search{nodes_.root()});
      for (std::size_t searching = some.size(); searching > 0;)
        for (std::size_t i = 0; i < some.size(); ++i) {
          if (at[i].at == nullptr || !nodes::step_to_value(parts, some[i], at[i], found[i])) continue;
          at[i].at = nullptr;
          --searching;
        }
    });
  }

  // Fills `out` with the entries whose keys are >= from, ascending; returns their number. Each leaf is read atomically;
  // entries that are present during the whole scan are never missed.
  std::size_t scan(key_type from, std::span<entry> out) {
    const auto guard = nodes_.pin();
    std::size_t count = 0;
    node* leaf = nodes_.node_of(from, 0);
    while (count < out.size()) {
      const sync::version_lock& lock = nodes_.lock_of(leaf);
      const std::uint64_t version = lock.read_begin();
      const node_pointer next = leaf->sibling.load(std::memory_order_acquire);
      if (next) media::prefetch(medium_, medium_.resolve(next), sizeof(node));
      media::annotate_read(medium_, *leaf);
      const key_type high = leaf->high_key.load(std::memory_order_acquire);
      const slot_array order = leaf->array();
      const std::size_t in_leaf = copy_entries(*leaf, order, from, out.subspan(count));
      if (!lock.read_validate(version)) continue;
      if (order.level() != 0) [[unlikely]] {
        if (order.level() != detail::wb_tree::gone_level) nodes::throw_damaged();
        leaf = nodes_.node_of(from, 0);  // joined since: its entries are elsewhere
        continue;
      }
      count += in_leaf;
      if (!next) break;
      leaf = nodes::sibling_at(medium_, next, high);
      from = std::max(from, high);
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
    for_each_leaf([&](const node& leaf, slot_array order) {
      for (std::size_t rank = 0; rank < order.count(); ++rank)
        function(leaf.key_at(order[rank]), leaf.value_at(order[rank]));
    });
  }

  // Entries in the tree; walks its leaves.
  [[nodiscard]] std::uint64_t size() const {
    std::uint64_t entries = 0;
    for_each_leaf([&](const node&, slot_array order) { entries += order.count(); });
    return entries;
  }

  // depth = levels; nodes = all nodes of the tree; load factor = entries / slots of leaves. The bytes in the medium
  // include retired nodes.
  [[nodiscard]] index_stats stats() const {
    return nodes_.stats(size(), nodes_.root()->array().level() + 1, capacity,
                        [this](std::uint64_t level) { return nodes_.node_of(0, level); });
  }

  // Checks every invariant above.
  [[nodiscard]] check_report check() const {
    return detail::wb_tree::checker<Medium>(medium_).run(
        node_pointer(nodes_.root_word().load(std::memory_order_acquire)));
  }

 private:
  static constexpr std::size_t capacity = detail::wb_tree::capacity;
  static constexpr std::size_t batch_width = 16;

  wb_tree(Medium& medium, std::string_view name)
      : medium_(medium), nodes_(medium, *medium.named_root(name, layout_name, layout_version).word) {}

  // ---- reading ----

  static std::size_t copy_entries(const node& leaf, slot_array order, key_type from, std::span<entry> out) noexcept {
    std::size_t rank = from == 0 ? 0 : leaf.count_up_to(order, from - 1);
    std::size_t count = 0;
    for (; rank < order.count() && count < out.size(); ++rank)
      out[count++] = {leaf.key_at(order[rank]), leaf.value_at(order[rank])};
    return count;
  }

  // Calls function(leaf, its slot array) for every leaf, from left to right. REQUIRES: no writer.
  template <class Function>
  void for_each_leaf(Function&& function) const {
    nodes_.for_each_from(nodes_.node_of(0, 0), [&](const node& leaf) {
      const slot_array order = leaf.array();
      if (order.level() != 0) [[unlikely]]
        nodes::throw_damaged();
      function(leaf, order);
    });
  }

  // ---- writing ----

  // insert and upsert: `on_existing(value word)` handles a key that is present.
  template <class OnExisting>
  outcome put(key_type key, value_type value, OnExisting&& on_existing) {
    return nodes_.after_reclaiming([&] { return put_if_space(key, value, on_existing); });
  }

  template <class OnExisting>
  outcome put_if_space(key_type key, value_type value, OnExisting& on_existing) {
    const auto guard = nodes_.pin();
    for (;;) {
      {
        const locked_node leaf(nodes_, key, 0);
        const slot_array order = (*leaf).array();
        const std::size_t count = (*leaf).count_up_to(order, key);
        if (count != 0 && (*leaf).key_at(order[count - 1]) == key)
          return on_existing((*leaf).entries[order[count - 1]].value);
        if (!order.is_full()) {
          detail::wb_tree::insert_into(medium_, *leaf, order, count, key, value);
          return outcome::inserted;
        }
      }
      if (!make_room(key, 0)) return outcome::full;
    }
  }

  // ---- splits ----

  // A node and the child under it that a key belongs to.
  struct parent_and_child {
    node* parent = nullptr;  // nullptr: the child is on the root's level
    node* child = nullptr;
  };

  // As `step`: by the time that they are locked, `are_related` may be false.
  [[nodiscard]] parent_and_child related(key_type key, std::uint64_t level) const {
    node_pointer child;
    parent_and_child result;
    result.parent =
        nodes_.visit_node_of(key, level + 1, [&](const node& n, slot_array order) { child = n.child_of(order, key); });
    if (result.parent == nullptr) return result;
    if (!media::can_name(medium_, child)) nodes::throw_damaged();
    result.child = medium_.resolve(child);
    media::prefetch(medium_, *result.child);
    return result;
  }
  // True if this locked parent still leads from `key` to the child. Then neither is gone, and the key is in the range
  // of both: one that lost it to a split leads elsewhere.
  [[nodiscard]] bool are_related(const parent_and_child& both, key_type key) const {
    const node& parent = *both.parent;
    return !parent.is_gone() && parent.child_of(parent.array(), key) == medium_.locate(both.child);
  }

  // Splits the node of `key` on `level` if it is full, and before it each full one above. The caller begins again in
  // any case. False: no space, and the tree has the same entries.
  bool make_room(key_type key, std::uint64_t level) {
    const parent_and_child both = related(key, level);
    if (both.parent == nullptr) return split_root(key, level);
    {
      const sync::several_locks held{&nodes_.lock_of(both.parent), &nodes_.lock_of(both.child)};
      if (!are_related(both, key)) return true;
      if (both.child->is_beyond(key)) nodes::throw_damaged();  // T1, T2: or the caller would begin again for ever
      if (!both.child->array().is_full()) return true;
      if (!both.parent->array().is_full()) return split(*both.parent, *both.child, key);
    }
    return make_room(key, level + 1);
  }

  // Makes the upper entries of the full, locked node `left` a new node, and prepares the words that cut them off in
  // `change`. `made_for` is the key whose insertion requires it. nullptr: no space. The caller fences.
  node* split_off(publication& change, node& left, key_type made_for, key_type& separator) {
    auto* const right = static_cast<node*>(change.allocate(sizeof(node), alignof(node)));
    if (right == nullptr) return nullptr;
    const slot_array order = left.array();
    const node_pointer next = left.sibling.load(std::memory_order_relaxed);
    // Ascending keys fill the last node: the left one stays full, and the right one begins with the new key, or the
    // last child.
    const bool appending = !next && made_for > left.key_at(order[capacity - 1]);
    const std::size_t most = order.level() == 0 ? capacity : capacity - 1;
    const std::size_t middle = appending ? most : capacity / 2;
    separator = middle == capacity ? made_for : left.key_at(order[middle]);
    // Filled here, and then copied around the caches: the lines of the new node need not be read from the medium first.
    node filled;
    filled.sibling.store(next, std::memory_order_relaxed);
    filled.high_key.store(left.high_key.load(std::memory_order_relaxed), std::memory_order_relaxed);
    detail::wb_tree::slot_filler filler(filled, order.level());
    for (std::size_t rank = middle; rank < capacity; ++rank)
      filler.put(left.key_at(order[rank]), left.value_at(order[rank]));
    medium_.copy(right, &filled, sizeof(node));                            // (S1)
    media::publish_store(change, left.sibling, medium_.locate(right));     // (S2)
    media::publish_store(change, left.high_key, separator);                // (S3)
    media::publish_store(change, left.slots, order.first(middle).word());  // (S4)
    return right;
  }

  // Splits a locked node whose locked parent has room.
  bool split(node& parent, node& left, key_type made_for) {
    publication change(medium_);
    key_type separator = 0;
    node* const right = split_off(change, left, made_for, separator);
    if (right == nullptr) return false;
    const slot_array order = parent.array();
    const std::size_t slot = order.first_free();
    detail::wb_tree::fill_free_slot(parent, slot, separator, medium_.locate(right).word());  // (S5)
    media::flush(medium_, parent.entries[slot]);                                             // (S6)
    medium_.fence();                                                                         // (S7)
    const slot_array after = order.with(parent.count_up_to(order, separator), slot);
    media::publish_store(change, parent.slots, after.word());  // (S8)
    change.commit();
    // (S1), (S5) < (S6) < (S7) < (S2), (S3), (S4), (S8): the new node and the parent's entry are complete before
    // anything leads to them; allocation, cut and link are one publication, so that no crash leaks the node, shows an
    // entry in both or in none, or hides the node from the parent (F3, F4).
    return true;
  }

  // Puts a root above the full node of `key`, which is the root, and splits that. True without a change: it is not.
  bool split_root(key_type made_for, std::uint64_t level) {
    const auto guard = nodes_.lock_root();
    node& left = *nodes_.root();
    const sync::several_locks held{&nodes_.lock_of(&left)};
    if (left.sibling.load(std::memory_order_relaxed)) nodes::throw_damaged();  // a root has none; as in make_room
    const slot_array order = left.array();
    if (order.level() != level || !order.is_full()) return true;
    if (level + 1 == detail::wb_tree::most_levels) return false;
    publication change(medium_);
    auto* const top = media::create<node>(change);
    if (top == nullptr) return false;
    key_type separator = 0;
    node* const right = split_off(change, left, made_for, separator);
    if (right == nullptr) return false;
    detail::wb_tree::slot_filler filler(*top, level + 1);
    filler.put(0, medium_.locate(&left).word());
    filler.put(separator, medium_.locate(right).word());
    media::persist(medium_, *top);                                 // (R1)
    change.store(nodes_.root_word(), medium_.locate(top).word());  // (R2)
    // (S1) < (R1) < (R2): as (S7) < (S8).
    change.commit();
    return true;
  }

  // ---- loading ----

  // Adds the first of these entries, as many as fit into a row behind a leaf; returns their number. 0: they must go
  // into an existing leaf, or there is no space.
  std::size_t load_row(std::span<const entry> ascending) {
    const auto guard = nodes_.pin();
    const key_type first = ascending.front().key;
    for (;;) {
      const parent_and_child both = related(first, 0);
      if (both.parent == nullptr) return 0;
      {
        const sync::several_locks held{&nodes_.lock_of(both.parent), &nodes_.lock_of(both.child)};
        if (!are_related(both, first)) continue;
        if (both.child->is_beyond(first)) nodes::throw_damaged();  // as in make_room
        node& leaf = *both.child;
        const slot_array order = both.parent->array();
        if (!detail::wb_tree::row_may_follow(leaf, first)) return 0;
        if (!order.is_full()) return link_row(*both.parent, order, leaf, ascending);
      }
      if (!make_room(first, 1)) return 0;
    }
  }

  // Makes a row of these entries, as many as fit, between the locked `leaf` and its sibling.
  std::size_t link_row(node& parent, slot_array order, node& leaf, std::span<const entry> ascending) {
    const node_pointer next = leaf.sibling.load(std::memory_order_relaxed);
    const key_type bound = leaf.high_key.load(std::memory_order_relaxed);
    publication change(medium_);
    using row_type = detail::wb_tree::leaf_row;
    const std::size_t most = std::min(capacity - order.count(), row_type::most_leaves);
    const row_type row = detail::wb_tree::make_row(
        medium_, change,
        detail::fit_into_row(ascending, most * detail::wb_tree::loaded_entries, next ? bound - 1 : bound));
    if (row.count == 0) return 0;
    row.last().sibling.store(next, std::memory_order_relaxed);
    row.last().high_key.store(bound, std::memory_order_relaxed);
    std::size_t rank = parent.count_up_to(order, row.low_keys[0]);
    for (std::size_t i = 0; i < row.count; ++i) {
      const std::size_t slot = order.first_free();
      detail::wb_tree::fill_free_slot(parent, slot, row.low_keys[i], medium_.locate(row.leaves[i]).word());  // (W1)
      order = order.with(rank++, slot);
      media::flush(medium_, *row.leaves[i]);        // (W2)
      media::flush(medium_, parent.entries[slot]);  // (W3)
    }
    medium_.fence();                                                            // (W4)
    media::publish_store(change, leaf.sibling, medium_.locate(row.leaves[0]));  // (W5)
    media::publish_store(change, leaf.high_key, row.low_keys[0]);               // (W6)
    media::publish_store(change, parent.slots, order.word());                   // (W7)
    change.commit();
    // (W1) < (W2), (W3) < (W4) < (W5), (W6), (W7): as (S7) < (S8); so a crash leaves all of the row or none of it.
    return row.entries;
  }

  Medium& medium_;
  nodes nodes_;
};

}  // namespace pmlab::indexes
