// A radix tree over keys of 8 bytes, whose changes are committed by stores of 8 bytes: the code of WORT and WOART,
// which differ in their kinds of nodes.
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
// Changes of the structure, and invariants: structure.hpp, node.hpp (X1, X2), limbo.hpp (B1, B2).
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/after_reclaiming.hpp>
#include <pmlab/indexes/detail/batches.hpp>
#include <pmlab/indexes/detail/count_entries.hpp>
#include <pmlab/indexes/detail/radix/node.hpp>
#include <pmlab/indexes/detail/radix/structure.hpp>
#include <pmlab/indexes/detail/radix/walk.hpp>
#include <pmlab/indexes/detail/range_by_scan.hpp>
#include <pmlab/indexes/detail/replace_value.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace pmlab::indexes::detail::radix {

// `Layout`: the name and version of the layout, and its `kinds` of nodes. See the file's prologue for use, thread
// safety, durability and layout. Operations: a node for each digit of the key at most; a scan of m entries
// O(digits + m).
template <media::medium Medium, class Layout>
class tree {
  using kinds = typename Layout::kinds;
  using digits = typename kinds::digits;
  using way_of_key = trail<digits>;

 public:
  static constexpr std::string_view layout_name = Layout::layout_name;
  static constexpr std::uint64_t layout_version = Layout::layout_version;
  static constexpr bool has_tree_of_strings = Layout::has_tree_of_strings;

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
    return put(key, value, [&](slot& s) { return detail::replace_value(medium_, s.value, value); });
  }

  // Replaces the value of `key`. updated or absent. Durable on return; one flush and one fence.
  outcome update(key_type key, value_type value) {
    return change(key, [&](const position&, slot& s) { return detail::replace_value(medium_, s.value, value); });
  }

  // Removes `key`. erased or absent. Durable on return; one flush and one fence. A node with few children left is
  // replaced by a smaller one, or removed.
  outcome erase(key_type key) {
    const auto guard = nodes_.epochs().pin();
    bool sparse = false;
    const outcome answer = change(key, [&](const position& at, slot& s) {
      s.word.store(0, std::memory_order_release);  // (E1) commit
      media::persist(medium_, s);                  // (E2)
      // (E1) < (E2) < unlock: a reader that misses the key answers only when its removal is durable.
      sparse = nodes_.may_be_sparse(at, s);
      return outcome::erased;
    });
    if (sparse) tidy(key);
    return answer;
  }

  // The value of `key`. Reads one slot for each node on the way; in small nodes some more.
  std::optional<value_type> find(key_type key) {
    const auto guard = nodes_.epochs().pin();
    return search(key);
  }

  // Prefetches the first slot that a search for `key` reads.
  void prefetch_find(key_type key) noexcept { prefetch(position{root_, kinds::largest, 0}, key); }

  // values[i] := find(keys[i]). The searches go down together, so that the cache misses of a level overlap.
  void find_batch(std::span<const key_type> keys, std::span<std::optional<value_type>> values);

  // Fills `out` with the entries whose keys are >= from, ascending; returns their number. The children of a node are
  // read atomically, up to 48 at a time; entries that are present during the whole scan are never missed.
  std::size_t scan(key_type from, std::span<entry> out) {
    const auto guard = nodes_.epochs().pin();
    std::size_t count = 0;
    if (!out.empty()) scan_below(position{root_, kinds::largest, 0}, {}, from, out, count);
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
  [[nodiscard]] std::uint64_t size() const { return detail::count_entries(*this); }

  // depth = nodes on the longest way; nodes = all nodes of the tree; load factor = entries and links / slots. The bytes
  // in the medium include nodes that wait in the limbo.
  [[nodiscard]] index_stats stats() const;

  // Checks every invariant above.
  [[nodiscard]] check_report check() const {
    check_report report = radix::check<kinds>(medium_, *root_);
    nodes_.check_unlinked(report);
    return report;
  }

 private:
  static constexpr std::size_t batch_width = 16;

  tree(Medium& medium, std::string_view name) : medium_(medium), nodes_(medium) {
    std::atomic<std::uint64_t>& root = *medium.named_root(name, layout_name, layout_version).word;
    if (root.load(std::memory_order_acquire) == 0) nodes_.create(root);
    root_ = &nodes_.begin(head_at(medium, media::pointer<tree_head>(root.load(std::memory_order_acquire))));
  }

  // ---- reading ----

  void prefetch(const position& at, key_type key) const noexcept {
    kinds::as_kind(*at.n, at.kind, [&](const auto& n) {
      n.first_read(digits::at(key, at.depth), [this](const auto& object) { media::prefetch(medium_, object); });
    });
  }

  // One step of a search: `at` moves to the next node, or (true) `found` is the value of `key`.
  bool step_towards(key_type key, position& at, std::optional<value_type>& found) {
    slot_word word = nodes_.slot_in(at, key).word;
    if (!word.is_link()) {
      // The search ends here, and its result must be durable: now the slot is read under the node's version.
      const sync::version_lock& lock = nodes_.lock_of(at.n);
      const std::uint64_t version = lock.read_begin();
      const found_slot found_here = nodes_.slot_in(at, key);
      word = found_here.word;
      const value_type value = found_here.at == nullptr ? 0 : found_here.at->value.load(std::memory_order_acquire);
      if (!lock.read_validate(version)) [[unlikely]]
        return false;
      if (!word.is_link()) {
        found = word == slot_word::entry(key) ? std::optional(value) : std::nullopt;
        return true;
      }
    }
    at = nodes_.child_at(word, at.depth);
    return false;
  }

  // REQUIRES: a guard.
  std::optional<value_type> search(key_type key) {
    std::optional<value_type> found;
    for (position at{root_, kinds::largest, 0}; !step_towards(key, at, found);) {
    }
    return found;
  }

  void descend(key_type key, way_of_key& way) const {
    way.count = 0;
    visited at{{root_, kinds::largest, 0}, nullptr, slot_word(0)};
    for (;;) {
      way.nodes[way.count++] = at;
      const found_slot found = nodes_.slot_in(at, key);
      way.end = found.at;
      way.word = found.word;
      if (!way.word.is_link()) return;
      at = {nodes_.child_at(way.word, at.depth), way.end, way.word};
    }
  }

  // The first digits of all keys below a node, as the way to it shows.
  struct known_digits {
    key_type path = 0;
    unsigned count = 0;
  };

  // Adds the entries below a node with keys >= from. False: `out` is full. Throws pmlab::error: the node's header is
  // another one than the way to it shows; the medium was damaged.
  bool scan_below(const position& at, known_digits known, key_type from, std::span<entry> out,
                  std::size_t& count) const {
    key_type least = 0;
    if (!at.n->template is_of<digits>(known.path, known.count, at.depth, least)) [[unlikely]]
      throw corrupt("a header");
    if ((least | ~digits::mask_before(at.depth)) < from) return true;
    std::size_t next = least >= from ? 0 : digits::at(from, at.depth);
    const sync::version_lock& lock = nodes_.lock_of(at.n);
    children found;
    while (next < digits::values) {
      const std::uint64_t version = lock.read_begin();
      found.clear(out.size() - count);
      const std::size_t end = kinds::as_kind(*at.n, at.kind, [&](const auto& n) {
        return n.collect(next, at.depth, found, [this](const auto& object) { media::annotate_read(medium_, object); });
      });
      if (!lock.read_validate(version)) continue;
      next = end;
      std::size_t needed = out.size() - count;
      for (const child& c : found.all()) {
        if (needed-- == 0) break;
        if (c.word.is_link()) prefetch(nodes_.child_at(c.word, at.depth), 0);
      }
      for (const child& c : found.all()) {
        if (c.word.is_link()) {
          const known_digits to_child{least | key_type{c.digit} << (64 - digits::bits * (at.depth + 1)), at.depth + 1};
          if (!scan_below(nodes_.child_at(c.word, at.depth), to_child, from, out, count)) return false;
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
    const auto guard = nodes_.epochs().pin();
    way_of_key way;
    for (const header* unlinked = nullptr;; expect_progress(way, unlinked)) {
      descend(key, way);
      if (way.word != slot_word::entry(key)) {
        if (!search(key)) return outcome::absent;
        continue;
      }
      const std::scoped_lock held(nodes_.lock_of(way.last().n));
      if (!way.last().n->is_gone() && way.end->load() == way.word) return operation(way.last(), *way.end);
    }
  }

  // After an attempt that another writer made fail. Throws pmlab::error if the way has the same unlinked node as
  // before: the medium was damaged. REQUIRES: the guard of both attempts.
  void expect_progress(const way_of_key& way, const header*& unlinked) const {
    const header* const before = std::exchange(unlinked, nodes_.unlinked_in(way));
    if (unlinked != nullptr && unlinked == before) throw corrupt("a node is linked and unlinked");
  }

  // insert and upsert: `on_existing(slot)` handles a key that is present.
  template <class OnExisting>
  outcome put(key_type key, value_type value, OnExisting&& on_existing) {
    return detail::after_reclaiming(nodes_.epochs(), [&] { return put_if_space(key, value, on_existing); });
  }

  template <class OnExisting>
  outcome put_if_space(key_type key, value_type value, OnExisting& on_existing) {
    const auto guard = nodes_.epochs().pin();
    way_of_key way;
    for (const header* unlinked = nullptr;; expect_progress(way, unlinked)) {
      descend(key, way);
      if (const std::optional<outcome> answer = try_put(way, key, value, on_existing)) return *answer;
    }
  }

  // None: another writer was faster.
  template <class OnExisting>
  std::optional<outcome> try_put(const way_of_key& way, key_type key, value_type value, OnExisting& on_existing) {
    const visited& last = way.last();
    if (way.word == slot_word::entry(key)) {
      const std::scoped_lock held(nodes_.lock_of(last.n));
      if (last.n->is_gone() || way.end->load() != way.word) return std::nullopt;
      return on_existing(*way.end);
    }
    if (!way.word.is_empty() && !way.word.is_entry()) throw corrupt("a slot");
    // A key below the last node, as far as it is known: where `key` leaves its path, it leaves the tree.
    const key_type other =
        way.word.is_entry() ? way.word.key(key) : last.n->path() | (key & ~digits::mask_before(last.depth));
    const unsigned end = other == key ? last.depth : digits::first_difference(other, key);
    if (way.word.is_entry() && end == last.depth) throw corrupt("a slot");
    if (end < last.depth) {
      std::size_t i = 1;
      while (way.nodes[i].depth <= end) ++i;
      if (way.nodes[i - 1].depth == end) throw corrupt("a slot");
      return nodes_.add_parent(way.nodes[i - 1], way.nodes[i], other, end, key, value);
    }
    return way.word.is_entry() ? nodes_.part(last, *way.end, way.word, end, key, value) : nodes_.add(way, key, value);
  }

  // Notes that the node where `key` was is sparse, and replaces or removes the one noted before: so a key that is
  // inserted and erased in turns does not make its node change each time. While nodes become empty, those above are
  // removed, too. REQUIRES: a guard. Without space, nothing happens.
  void tidy(key_type key) {
    const key_type same_node = key | 1;  // the ways of two keys that differ in the last bit end in one node
    const key_type before = sparse_.exchange(same_node, std::memory_order_relaxed);
    if (before == same_node || before == 0) return;
    way_of_key way;
    descend(before, way);
    nodes_.reduce_end_of(way);
  }

  Medium& medium_;
  structure<Medium, kinds> nodes_;
  header* root_ = nullptr;
  std::atomic<key_type> sparse_{0};  // a key whose way ends in a sparse node, or 0; see `tidy`
};

template <media::medium Medium, class Layout>
void tree<Medium, Layout>::find_batch(std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
  const auto guard = nodes_.epochs().pin();
  detail::in_batches<batch_width>(keys, values, [this](const auto some, const auto found) {
    std::array<position, batch_width> at;
    at.fill({root_, kinds::largest, 0});
    for (std::size_t searching = some.size(); searching > 0;)
      for (std::size_t i = 0; i < some.size(); ++i) {
        if (at[i].n == nullptr) continue;
        const key_type key = some[i];
        if (step_towards(key, at[i], found[i])) {
          at[i].n = nullptr;
          --searching;
        } else {
          prefetch(at[i], key);
        }
      }
  });
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
  result.medium_bytes += nodes_.medium_bytes_beside_nodes();
  result.dram_bytes = nodes_.dram_bytes();
  return result;
}

}  // namespace pmlab::indexes::detail::radix
