// FP-tree: leaves in persistent memory, everything else in DRAM, after Oukid et al., SIGMOD'16 [FP-tree].
//
// Use it for ordered data if searches of single keys and inserts matter most: most searches read one line of the
// medium. Opening reads all leaves (some tenths of a second for ten million keys): if that is too long, use FAST-FAIR.
//
// Thread safety: any operation from any number of threads (`check`, `stats`, `size`, `for_each`: no concurrent writer).
// Progress: readers write nothing that others read except their epoch; they wait only while a writer changes a leaf
// that they read, or a block of the search layer. Writers lock one leaf at a time; splits, joins and the removal of an
// empty leaf lock two, moves three.
//
// Durability: the result of an operation survives a crash (strict durable linearizability). A writer makes its change
// durable before it releases the leaf's version lock, and a reader returns only if that lock was free and unchanged
// while it read: it cannot have read anything that a crash undoes.
//
// Layout:
//
//   DRAM     search layer: sorted blocks, least key of a leaf -> its descriptor          (detail/search_layer.hpp)
//                |                 |
//                v                 v
//            descriptor  ----> descriptor ----> ...   lock, range, fingerprints of a leaf
//            (fp_tree/descriptor.hpp)
//   ---------    | --------------- | ----------------------------------------------------------------------------------
//   medium       v                 v
//              leaf   ------->   leaf   -------> ...   512 bytes: bitmap, next, 31 slots         (fp_tree/leaf.hpp)
//
//            named root -> leaf group -> leaf group -> ... -> the oldest one, which begins with the leftmost leaf
//
// Differences from the paper:
//  * Fingerprints can be computed from the keys, so they are kept in DRAM and recomputed by recovery. A search then
//    reads the line of the entry alone, and a commit flushes no fingerprints.
//  * Hash bits of a key choose its home line, where its entry belongs: one of the seven lines without the bitmap (of
//    random keys four in five are there). The word by which the search layer names a leaf also gives its address
//    (fp_tree/group_table.hpp), so that a search prefetches the home line and the descriptor at the same time,
//    and mostly waits for memory once. An entry may still be in any slot: the fingerprints locate it.
//  * Sparse neighbours are joined (fp_tree/join.hpp), so that erasing frees leaves before they are empty. If
//    more than a fifth of the leaves are free, leaves move out of the emptiest groups (fp_tree/move.hpp), which
//    are returned to the medium.
//  * No micro-logs. The link to a split's new leaf and the bitmap that drops the moved entries share a line, in which
//    stores become durable in order: a crash leaves the old leaf, or the new list with entries in two leaves, which
//    recovery detects and completes, or the whole split. The set of free leaves is not stored, so that neither a split
//    nor the removal of an empty leaf has an allocation to log. Only a new group of leaves is published.
//  * The word of a leaf's bitmap has a seal, a checksum of the bitmap and of the link beside it (L4). So a lost link is
//    detected when the tree is opened, and a salvage finds the leaf again that it led to. It costs no flush.
//  * Entries in the three slots beside the bitmap commit with one flush. An insert that finds no free one there moves
//    these entries to their home lines with its own (fp_tree/insert_plan.hpp), after LB+-tree [LB+-tree]: one fence
//    for all, and the store of one bitmap word commits.
//  * Values are eight bytes: an update replaces one in place. (The paper's update in another slot, whose bitmap store
//    flips two bits, is for values that no single store can replace.)
//  * Inner nodes are a B-link tree with version locks: a split never stops readers, and a failed transaction never
//    makes a thread wait for a global lock. Descents can try a hardware transaction first (P9), but only if
//    `fp_tree<Medium, sync::hardware_transactions>` requests it, since that path has never run on a processor that has
//    them. Tests run its code with `sync::transactions` of their own, in which other threads stand still.
//
// Invariants (L1 to L4: fp_tree/leaf.hpp; G1, G2: detail/leaf_group.hpp):
//   D1  The linked descriptors describe the leaves in the medium's list, in the same order.
//   D2  A linked leaf is in charge of the keys from its low to its `last`; the next one's low is last + 1. The leftmost
//       leaf's low is 0, the last one's `last` 2^64 - 1. A leaf's low never changes while it is linked.
//   D3  A descriptor has the fingerprints of its leaf's entries; 0 where there is none.
//   D4  The search layer leads to linked leaves only, by their low. One that it does not know (there was no memory, or
//       the split is under way) is found through its left neighbour.
//   D5  The thread that empties a leaf unlinks it, except the leftmost. A crash may leave an empty leaf until the next
//       open.
//   D6  Leaves and descriptors are freed by the group, when all leaves of the group are free and no reader is left that
//       began before (epochs). For a reader that moves from one to the next see detail/leaf_versions.hpp.
//   D7  The places of leaves in the search layer's names equal those in the descriptors.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/batches.hpp>
#include <pmlab/indexes/detail/corruption.hpp>
#include <pmlab/indexes/detail/leaf_versions.hpp>
#include <pmlab/indexes/detail/load_into.hpp>
#include <pmlab/indexes/detail/range_by_scan.hpp>
#include <pmlab/indexes/detail/replace_value.hpp>
#include <pmlab/indexes/detail/search_layer.hpp>
#include <pmlab/indexes/fp_tree/check.hpp>
#include <pmlab/indexes/fp_tree/descriptor.hpp>
#include <pmlab/indexes/fp_tree/flush_slots.hpp>
#include <pmlab/indexes/fp_tree/group_table.hpp>
#include <pmlab/indexes/fp_tree/insert_plan.hpp>
#include <pmlab/indexes/fp_tree/join.hpp>
#include <pmlab/indexes/fp_tree/leaf.hpp>
#include <pmlab/indexes/fp_tree/leaf_store.hpp>
#include <pmlab/indexes/fp_tree/move.hpp>
#include <pmlab/indexes/fp_tree/order.hpp>
#include <pmlab/indexes/fp_tree/recovery.hpp>
#include <pmlab/indexes/fp_tree/row.hpp>
#include <pmlab/indexes/fp_tree/salvage.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/epoch.hpp>
#include <pmlab/sync/relax.hpp>
#include <pmlab/sync/run_in_parallel.hpp>
#include <pmlab/sync/transactions.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string_view>

namespace pmlab::indexes {

// `Transactions`: how descents of the inner nodes are first tried; see inner_synchronisation(). Hardware transactions
// are experimental: no machine of the project has run that path.
template <media::medium Medium, sync::transactions Transactions = sync::no_transactions>
class fp_tree {
  using leaf = detail::fp_tree::leaf;
  using slot = detail::fp_tree::slot;
  using slot_set = detail::fp_tree::slot_set;
  using marks = detail::fp_tree::marks;
  using descriptor = detail::fp_tree::descriptor;
  using leaf_name = detail::fp_tree::leaf_name;
  using gathered_entries = detail::fp_tree::gathered_entries;
  using search_layer = detail::search_layer<Transactions>;

 public:
  static constexpr std::string_view layout_name = "fp_tree";
  static constexpr std::uint64_t layout_version = 1;

  // Opens the tree `name` in `medium`, or creates an empty one. Reads every leaf, with up to `threads` threads, and
  // completes operations that a crash interrupted. Throws pmlab::error: the name belongs to another layout, the tree is
  // corrupt (a link or a bitmap is overwritten, or leaves with entries are outside the list), no space for an empty
  // tree, no memory. `medium` must outlive the index.
  static fp_tree open(Medium& medium, std::string_view name = layout_name,
                      unsigned threads = sync::recovery_threads()) {
    try {
      return detail::with_the_name("FP-tree", name, [&] { return fp_tree(medium, name, threads); });
    } catch (const std::bad_alloc&) {
      throw error("no memory for the inner nodes of an FP-tree", "free some memory");
    }
  }

  // Calls function(key, value) for the readable entries of a tree that does not open, with or without a link that leads
  // to them; the entries of its list first. Changes nothing. Throws pmlab::error afterwards, if there was any damage:
  // with the unreadable parts, and with entries that may have been erased before.
  template <class Function>
  static void salvage(Medium& medium, std::string_view name, Function&& function) {
    const std::uint64_t root =
        medium.named_root(name, layout_name, layout_version).word->load(std::memory_order_acquire);
    detail::with_the_name("FP-tree", name, [&] { detail::fp_tree::salvage(medium, root, function); });
  }

  fp_tree(const fp_tree&) = delete;
  fp_tree& operator=(const fp_tree&) = delete;
  ~fp_tree() = default;

  // The synchronisation of descents of the inner nodes on this machine.
  [[nodiscard]] static std::string_view inner_synchronisation() noexcept {
    return Transactions::available() ? "hardware transactions" : "version locks";
  }

  // Adds (key, value). inserted; exists: the key is present and was left unchanged; full: no space, nothing changed.
  // Durable on return. One flush and fence if there is room beside the leaf's bitmap; if not, two fences, and at most
  // five lines: entries move, so that the next inserts find room there. A split writes a leaf and the line of the
  // bitmap, and sometimes publishes a group of leaves.
  outcome insert(key_type key, value_type value) {
    return put(key, value, [](slot&) { return outcome::exists; });
  }

  // Adds (key, value) or replaces the value of `key`. inserted, updated or full. Durable on return.
  outcome upsert(key_type key, value_type value) {
    return put(key, value, [&](slot& stored) { return detail::replace_value(medium_, stored.value, value); });
  }

  // Replaces the value of `key`. updated or absent. Durable on return; one flush and one fence.
  outcome update(key_type key, value_type value) {
    const auto guard = epochs_.pin();
    const locked_leaf at(*this, key);
    const std::optional<std::size_t> found = slot_of(*at, key);
    return found ? detail::replace_value(medium_, (*at).home->slots[*found].value, value) : outcome::absent;
  }

  // Removes `key`. erased or absent. Durable on return; one flush and one fence, and one more of each if the leaf is
  // empty then: its room is used again for other leaves. Now and then it joins two sparse neighbours: at most nine
  // flushes and three fences. A leaf that has gone may be followed by two others that move, so that a group of leaves
  // can go.
  outcome erase(key_type key) {
    const auto guard = epochs_.pin();
    key_type low_of_empty = 0;
    key_type low_of_sparse = 0;
    descriptor* joined = nullptr;
    {
      const locked_leaf at(*this, key);
      const std::optional<std::size_t> found = slot_of(*at, key);
      if (!found) return outcome::absent;
      const slot_set left = (*at).read_marks().used() & ~(slot_set{1} << *found);
      const bool is_sparse = left != 0 && detail::fp_tree::looks_for_a_neighbour(left);
      if (is_sparse) __builtin_prefetch((*at).next.load(std::memory_order_relaxed));
      leaf& home = *(*at).home;
      home.bitmap.store(store_.bitmap_of(home, left), std::memory_order_release);  // (E1) commit
      media::persist(medium_, home.bitmap);                                        // (E2)
      // (E1) < (E2) < unlock: a reader that misses the key answers only when its removal is durable.
      (*at).set_byte(*found, 0);
      if (left == 0) low_of_empty = low_of(*at).load(std::memory_order_relaxed);
      if (is_sparse) joined = join_with_next(*at);
      if (is_sparse && joined == nullptr) low_of_sparse = low_of(*at).load(std::memory_order_relaxed);
    }
    if (low_of_empty != 0) unlink(low_of_empty);
    if (low_of_sparse != 0) joined = join_with_previous(low_of_sparse);
    if (joined != nullptr) give_back(*joined);
    return outcome::erased;
  }

  // Many entries at once, see loadable_index: leaves that are filled beforehand, sixteen of them linked by one store.
  std::size_t load(std::span<const entry> ascending) {
    return detail::load_rows(*this, ascending, [this](std::span<const entry> rest) { return load_row(rest); });
  }

  // The value of `key`. Prefetches one line of the medium, which usually holds the key if it is present, and reads
  // another line if it does not.
  std::optional<value_type> find(key_type key) {
    const auto guard = epochs_.pin();
    for (;;) {
      const place at = place_of(key, [&](leaf_name name) { prefetch_home_line(name, key); });
      const std::optional<value_type> found = value_in(*at.d, key, candidates(*at.d, key));
      if (at.is_current()) [[likely]]
        return found;
    }
  }

  // Descends the inner nodes, and prefetches the line in which `key` most likely is. Needs no guard: it reads no leaf
  // and no descriptor.
  void prefetch_find(key_type key) const {
    layer_.find(key, [&](std::uint64_t word) {
      prefetch_home_line(leaf_name(word), key);
      __builtin_prefetch(leaf_name(word).descriptor());
    });
  }

  // values[i] := find(keys[i]). The searches descend together, so that the cache misses of a level overlap, and read
  // the lines of the entries alone.
  void find_batch(std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
    const auto guard = epochs_.pin();
    detail::in_batches<batch_width>(keys, values,
                                    [this](const auto some, const auto found) { find_together(some, found); });
  }

  // Fills `out` with the entries whose keys are >= from, ascending; returns their number. Each leaf is read atomically;
  // entries that are present during the whole scan are never missed.
  std::size_t scan(key_type from, std::span<entry> out) {
    if (out.empty()) return 0;
    const auto guard = epochs_.pin();
    look_ahead coming(*this, from, out.size());
    std::size_t count = 0;
    for (;;) {
      place at = place_of(from, [](leaf_name) {});
      for (;;) {
        if (!at.d->is_linked()) break;
        coming.prefetch_next();
        const gathered_entries here(*visited(*at.d).home, at.d->read_marks().used(), from);
        const key_type last = at.d->last.load(std::memory_order_acquire);
        descriptor* const next = at.d->next.load(std::memory_order_acquire);
        const std::size_t copied = here.copy_in_order(out.subspan(count));
        const bool ends = count + copied == out.size() || next == nullptr;
        const place to = ends ? at : place(*next);
        if (!at.is_current()) break;
        count += copied;
        if (ends) return count;
        from = last + 1;
        at = to;
      }
    }
  }

  // Calls function(key, value) for every entry of [first, last], ascending. Writers may run; see `scan`.
  template <class Function>
  void for_each_in(key_type first, key_type last, Function&& function) {
    detail::for_each_in_by_scan(*this, first, last, function);
  }

  // Calls function(key, value) for every entry, ascending.
  template <class Function>
  void for_each(Function&& function) const {
    std::array<entry, detail::fp_tree::capacity> sorted;
    for_each_leaf([&](descriptor& d) {
      const std::size_t count = gathered_entries(*d.home, d.read_marks().used(), 0).copy_in_order(sorted);
      for (std::size_t i = 0; i < count; ++i) function(sorted[i].key, sorted[i].value);
    });
  }

  // Entries in the tree; walks its leaves, but not in the medium.
  [[nodiscard]] std::uint64_t size() const {
    std::uint64_t entries = 0;
    for_each_leaf([&](descriptor& d) { entries += static_cast<unsigned>(std::popcount(d.read_marks().used())); });
    return entries;
  }

  // depth = levels of the search layer, and one of leaves; nodes = leaves in use; medium bytes = all leaves.
  [[nodiscard]] index_stats stats() const {
    index_stats result;
    result.entries = size();
    for_each_leaf([&](descriptor&) { ++result.nodes; });
    result.depth = layer_.levels() + 1;
    result.load_factor =
        static_cast<double>(result.entries) / static_cast<double>(result.nodes * detail::fp_tree::capacity);
    result.medium_bytes = store_.medium_bytes();
    result.dram_bytes = store_.dram_bytes() + layer_.bytes();
    return result;
  }

  // Checks every invariant above. A leaf that the search layer does not know, or that is empty, is no violation.
  [[nodiscard]] check_report check() const { return detail::fp_tree::check(medium_, store_, layer_); }

 private:
  static constexpr std::size_t batch_width = 16;

  fp_tree(Medium& medium, std::string_view name, unsigned threads)
      : medium_(medium),
        store_(medium, *medium.named_root(name, layout_name, layout_version).word),
        layer_(word_of(store_.leftmost())) {
    const auto entries = detail::fp_tree::recovery<Medium>(medium, store_, threads).run();
    if (!layer_.build(entries, threads)) throw std::bad_alloc();
  }

  [[nodiscard]] static std::uint64_t word_of(const descriptor& d) noexcept { return leaf_name(d).word(); }

  // ---- reading ----

  using place = detail::versioned_leaf<descriptor>;

  [[nodiscard]] static place place_named(std::uint64_t word) noexcept { return place(*leaf_name(word).descriptor()); }

  // The leaf that is in charge of `key`, if the place is still current after the caller's reads. Before it waits for
  // the descriptor it calls `foresee(name)` with the name of what is nearly always that leaf: lines that it prefetches
  // there arrive together with the descriptor.
  template <class Foresee>
  [[nodiscard]] place place_of(key_type key, Foresee&& foresee) const {
    for (sync::backoff wait;; wait.pause()) {
      place at;
      layer_.find(key, [&](std::uint64_t word) {
        foresee(leaf_name(word));
        at = place_named(word);
      });
      if (at.go_right(key)) [[likely]]
        return at;
    }
  }

  // The line where `key` most likely is if it is in the named leaf: its home line. nullptr: only the descriptor knows.
  [[nodiscard]] const std::byte* home_line_of(leaf_name name, key_type key) const noexcept {
    const auto* const home = reinterpret_cast<const std::byte*>(store_.home_of(name));
    if (home == nullptr) [[unlikely]]
      return nullptr;
    return home + detail::fp_tree::home_line(key) * media::cache_line_bytes;
  }

  void prefetch_home_line(leaf_name name, key_type key) const noexcept {
    const std::byte* const line = home_line_of(name, key);
    if (line != nullptr) media::prefetch(medium_, line, media::cache_line_bytes);
  }

  // Prefetches the lines that a writer will most likely store to. (No read of the medium: if the writer reads there
  // first, it annotates that.)
  void prefetch_to_write(leaf_name name, key_type key) const noexcept {
    constexpr int for_writing = 1;
    __builtin_prefetch(home_line_of(name, key), for_writing);
    __builtin_prefetch(store_.home_of(name), for_writing);
    __builtin_prefetch(&low_of(*name.descriptor()));
  }

  [[nodiscard]] static slot_set candidates(const descriptor& d, key_type key) noexcept {
    return d.read_marks().equal_to(detail::fp_tree::fingerprint_of(key));
  }

  [[nodiscard]] std::optional<value_type> value_in(const descriptor& d, key_type key, slot_set among) const noexcept {
    const std::optional<std::size_t> found = slot_among(d, key, among);
    if (!found) return std::nullopt;
    return d.home->slots[*found].value.load(std::memory_order_acquire);
  }

  [[nodiscard]] std::optional<std::size_t> slot_among(const descriptor& d, key_type key,
                                                      slot_set among) const noexcept {
    return detail::first_slot(among, [&](std::size_t i) {
      media::annotate_read(medium_, d.home->slots[i]);
      return d.home->slots[i].key.load(std::memory_order_acquire) == key;
    });
  }

  [[nodiscard]] std::optional<std::size_t> slot_of(const descriptor& d, key_type key) const noexcept {
    return slot_among(d, key, candidates(d, key));
  }

  descriptor& visited(descriptor& d) const noexcept {
    media::annotate_read(medium_, *d.home);
    return d;
  }

  // At most batch_width keys: down through the search layer, then to the descriptors, then to the entries.
  void find_together(std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
    std::array<typename search_layer::descent, batch_width> descents;
    std::array<bool, batch_width> arrived{};
    for (std::size_t i = 0; i < keys.size(); ++i) descents[i] = layer_.begin(keys[i]);
    for (std::size_t searching = keys.size(); searching > 0;)
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (arrived[i]) continue;
        arrived[i] =
            layer_.step(descents[i], [](std::uint64_t word) { __builtin_prefetch(leaf_name(word).descriptor()); });
        if (arrived[i])
          --searching;
        else
          layer_.prefetch(descents[i]);
      }

    std::array<place, batch_width> at;
    std::array<slot_set, batch_width> among;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      // The last step once more, now that the descriptor has arrived.
      while (!layer_.step(descents[i], [&](std::uint64_t word) { at[i] = place_named(word); })) {
      }
      among[i] = 0;
      if (!at[i].go_right(keys[i])) {
        at[i] = {};
        continue;
      }
      among[i] = candidates(*at[i].d, keys[i]);
      detail::for_each_slot(among[i], [&](std::size_t s) { media::prefetch(medium_, at[i].d->home->slots[s]); });
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (at[i].d != nullptr) values[i] = value_in(*at[i].d, keys[i], among[i]);
      if (at[i].d == nullptr || !at[i].is_current()) values[i] = find(keys[i]);
    }
  }

  // Prefetches the leaves that a scan will read while it reads the first one. Only a hint: a descriptor that was linked
  // a moment ago stays a descriptor.
  class look_ahead {
   public:
    look_ahead(const fp_tree& tree, key_type from, std::size_t entries) : tree_(tree) {
      constexpr std::size_t usual_entries = detail::fp_tree::capacity * 2 / 3;
      count_ = tree.layer_.words_after(from, std::span(words_).first(std::min(entries / usual_entries, words_.size())));
      for (std::size_t i = 0; i < count_; ++i) __builtin_prefetch(leaf_name(words_[i]).descriptor());
    }

    // Call it once for every leaf.
    void prefetch_next() noexcept {
      for (; next_ < std::min(count_, at_ + distance); ++next_)
        media::prefetch(tree_.medium_, *leaf_name(words_[next_]).descriptor()->home);
      ++at_;
    }

   private:
    static constexpr std::size_t distance = 2;
    const fp_tree& tree_;
    std::array<std::uint64_t, 16> words_;
    std::size_t count_ = 0;
    std::size_t at_ = 0;    // how many leaves have been read
    std::size_t next_ = 0;  // next place in words_
  };

  // Calls function(descriptor) for every leaf of the tree, from left to right.
  template <class Function>
  void for_each_leaf(Function&& function) const {
    for (descriptor* d = &store_.leftmost(); d != nullptr; d = d->next.load(std::memory_order_acquire)) function(*d);
  }

  // ---- writing ----

  // The leaf that is in charge of a key, locked.
  struct locked_leaf : detail::held_leaf<descriptor> {
    locked_leaf(const fp_tree& tree, key_type key)
        : detail::held_leaf<descriptor>(detail::lock_in_charge(key, [&]() -> descriptor& {
            return *tree.place_of(key, [&](leaf_name name) { tree.prefetch_to_write(name, key); }).d;
          })) {}
  };

  // insert and upsert: `on_existing(slot)` handles a key that is present.
  template <class OnExisting>
  outcome put(key_type key, value_type value, OnExisting&& on_existing) {
    const auto guard = epochs_.pin();
    descriptor* right = nullptr;
    {
      const locked_leaf at(*this, key);
      if (const auto found = slot_of(*at, key)) return on_existing((*at).home->slots[*found]);
      if ((*at).read_marks().free() == 0) {
        right = split(*at, key);
        if (right == nullptr) return outcome::full;
      }
      if (right == nullptr || key < low_of(*right).load(std::memory_order_relaxed))
        add(*at, key, value);
      else
        add(*right, key, value);
    }
    if (right != nullptr) announce(*right, low_of(*right).load(std::memory_order_relaxed));
    return outcome::inserted;
  }

  // Adds a new leaf to the search layer; no thread unlinks it before, because it is still locked. Without memory the
  // layer does not know it, and the left neighbour leads to it (D4).
  void announce(descriptor& made, key_type low) {
    layer_.put(low, word_of(made));
    made.lock.unlock();
  }

  // Adds an entry to a locked leaf that has a free slot and does not have the key.
  void add(descriptor& d, key_type key, value_type value) {
    const marks bytes = d.read_marks();
    leaf& home = *d.home;
    // If all of them are used, their keys are read.
    if ((bytes.free() & detail::fp_tree::slots_of_line(0)) == 0) media::annotate_read(medium_, home.slots[0]);
    const detail::fp_tree::insert_plan plan = detail::fp_tree::plan_insert(home, key, bytes.free());
    home.slots[plan.slot].value.store(value, std::memory_order_release);  // (I1)
    home.slots[plan.slot].key.store(key, std::memory_order_release);      // (I2)
    detail::for_each_slot(plan.moves, [&](std::size_t from) {
      slot& to = home.slots[plan.to[from]];
      to.value.store(home.slots[from].value.load(std::memory_order_relaxed), std::memory_order_release);  // (I3)
      to.key.store(home.slots[from].key.load(std::memory_order_relaxed), std::memory_order_release);      // (I4)
    });
    if (detail::fp_tree::flush_slots(medium_, home, plan.stored)) medium_.fence();  // (I5)
    const slot_set used = (bytes.used() | plan.stored) & ~plan.moves;
    home.bitmap.store(store_.bitmap_of(home, used), std::memory_order_release);  // (I6) commit
    media::persist(medium_, home.bitmap);                                        // (I7)
    // (I1), (I2), (I3), (I4) < (I5) < (I6): the bitmap never shows an incomplete entry. The slots beside it share its
    // line, in which the order of the stores is enough.
    // (I6) is one word: a crash image has each entry that moves in its old slot or in its new one, never in both or in
    // none. Until then nothing is stored to a slot that the bitmap in the medium shows.
    // (I6) < (I7) < unlock: the value that a reader returns is durable. A slot that an entry left is used again when no
    // crash brings the old bitmap back, and no sooner.
    d.set_byte(plan.slot, detail::fp_tree::fingerprint_of(key));
    detail::for_each_slot(plan.moves, [&](std::size_t from) {
      d.set_byte(plan.to[from], detail::fp_tree::fingerprint_of(home.slots[from].key.load(std::memory_order_relaxed)));
      d.set_byte(from, 0);
    });
  }

  // Moves the upper half of a locked leaf, all of whose slots are entries, to a new leaf on its right, which is
  // returned locked. `made_for`: the key whose insertion requires it. nullptr: no space; nothing has changed.
  descriptor* split(descriptor& d, key_type made_for) {
    descriptor* const right = store_.take();
    if (right == nullptr) return nullptr;
    right->lock.lock();
    leaf& from = *visited(d).home;
    leaf& to = *right->home;
    const gathered_entries all(from, detail::fp_tree::all_slots, 0);
    std::array<std::size_t, detail::fp_tree::capacity> slot_of_rank;
    all.for_each_rank([&](std::size_t i, std::size_t rank) { slot_of_rank[rank] = i; });
    // Ascending keys fill the last leaf: the left leaf then stays full.
    const key_type greatest = all[slot_of_rank.back()].key;
    const bool appending = d.next.load(std::memory_order_relaxed) == nullptr && made_for > greatest;
    const std::size_t stay = appending ? detail::fp_tree::capacity : (detail::fp_tree::capacity + 1) / 2;
    const key_type low = appending ? greatest + 1 : all[slot_of_rank[stay]].key;

    to.next.store(from.next.load(std::memory_order_relaxed), std::memory_order_relaxed);
    slot_set left_behind = 0;
    for (std::size_t rank = 0; rank < stay; ++rank) left_behind |= slot_set{1} << slot_of_rank[rank];
    std::array<entry, detail::fp_tree::capacity> moved;
    for (std::size_t rank = stay; rank < detail::fp_tree::capacity; ++rank)
      moved[rank - stay] = all[slot_of_rank[rank]];
    // Redundant when no slot of a line below the last used one is used.
    detail::fp_tree::fill(medium_, store_, *right, std::span(moved).first(detail::fp_tree::capacity - stay));  // (S1)
    medium_.fence();                                                                                           // (S2)
    from.next.store(medium_.locate(&to), std::memory_order_release);                                           // (S3)
    from.bitmap.store(store_.bitmap_of(from, left_behind), std::memory_order_release);  // (S4) commit
    medium_.flush(&from, offsetof(leaf, slots));                                        // (S5)
    medium_.fence();                                                                    // (S6)
    // (S1) < (S2) < (S3): the new leaf is whole, its own link included, before the list leads to it (P1).
    // (S3) < (S4): one line, so that no crash image lacks what has moved. One with (S3) alone has it twice (L3).
    // (S4) < (S5) < (S6) < unlock: before the new leaf changes, the old one has dropped the moved entries.

    detail::fp_tree::put_in_charge(*right, low, d.last.load(std::memory_order_relaxed),
                                   d.next.load(std::memory_order_relaxed));
    d.next.store(right, std::memory_order_release);
    d.last.store(low - 1, std::memory_order_release);
    detail::for_each_slot(detail::fp_tree::all_slots & ~left_behind, [&](std::size_t i) { d.set_byte(i, 0); });
    return right;
  }

  // Adds the first of these entries, as many as fit into a row of new leaves between two existing ones; returns their
  // number. 0: they must go into an existing leaf, or there is no space.
  std::size_t load_row(std::span<const entry> ascending) {
    const auto guard = epochs_.pin();
    detail::fp_tree::leaf_row row;
    {
      const key_type first = ascending.front().key;
      const locked_leaf at(*this, first);
      const slot_set used = (*at).read_marks().used();
      if (static_cast<std::size_t>(std::popcount(used)) < detail::fp_tree::loaded_entries) return 0;
      if (gathered_entries(*visited(*at).home, used, first).size() != 0) return 0;
      row = detail::fp_tree::take_row(store_, ascending, (*at).last.load(std::memory_order_relaxed));
      if (row.count == 0) return 0;
      detail::fp_tree::link_row(medium_, store_, *at, row);
    }
    for (std::size_t i = 0; i < row.count; ++i) announce(*row.leaves[i], row.low(i));
    return row.entries.size();
  }

  // Removes the leaf whose low is `low` from the tree, if it is still linked and empty. It is not the leftmost (P4).
  void unlink(key_type low) {
    descriptor* empty = nullptr;
    {
      const locked_leaf left(*this, low - 1);
      // Otherwise the left neighbour has got its range: it is unlinked already.
      if ((*left).last.load(std::memory_order_relaxed) != low - 1) return;
      empty = (*left).next.load(std::memory_order_relaxed);
      // Locks are taken from left to right.
      empty->lock.lock();
      if (empty->read_marks().used() != 0) {
        empty->lock.unlock();
        return;
      }
      leaf& home = *(*left).home;
      home.next.store(empty->home->next.load(std::memory_order_relaxed), std::memory_order_release);  // (X1) commit
      const slot_set used = (*left).read_marks().used();
      home.bitmap.store(store_.bitmap_of(home, used), std::memory_order_release);  // (X2)
      media::persist(medium_, home.next);                                          // (X3)
      // (X1) < (X2): one line. A seal that is of the link before tells of a crash between the two (L4).
      // (X2) < (X3) < the leaf is freed: nothing is written to a leaf that the medium still leads to.
      (*left).next.store(empty->next.load(std::memory_order_relaxed), std::memory_order_release);
      (*left).last.store(empty->last.load(std::memory_order_relaxed), std::memory_order_release);
      empty->set_linked(false);
    }
    // Readers that the layer still leads there wait for the lock.
    layer_.remove(low, word_of(*empty));
    empty->lock.unlock();
    give_back(*empty);
  }

  // Makes a locked leaf and the next one a single leaf if they are sparse. The leaf that has gone; nullptr: they are
  // not.
  descriptor* join_with_next(descriptor& left) {
    descriptor* const right = left.next.load(std::memory_order_relaxed);
    if (right == nullptr || !detail::fp_tree::should_join(left, *right)) return nullptr;
    // Locks are taken from left to right. The next leaf is unlinked only with the lock of this one.
    right->lock.lock();
    if (!detail::fp_tree::should_join(left, *right)) {
      right->lock.unlock();
      return nullptr;
    }
    detail::fp_tree::take_in(medium_, store_, left, *right);
    left.next.store(right->next.load(std::memory_order_relaxed), std::memory_order_release);
    left.last.store(right->last.load(std::memory_order_relaxed), std::memory_order_release);
    right->clear_marks();
    // Readers that the layer still leads there wait for the lock.
    layer_.remove(low_of(*right).load(std::memory_order_relaxed), word_of(*right));
    right->lock.unlock();
    return right;
  }

  // The same for the leaf whose low is `low`, if it is still there, and the one before it.
  descriptor* join_with_previous(key_type low) {
    const locked_leaf left(*this, low - 1);
    return (*left).last.load(std::memory_order_relaxed) == low - 1 ? join_with_next(*left) : nullptr;
  }

  // Frees a leaf that is not linked and unreachable in the medium. REQUIRES: this thread holds no lock of a leaf, and
  // has a guard. Groups may be released, in steps of bounded length, two of them for a leaf: with a fifth of the leaves
  // free, at most 45 leaves move for the 56 of a group, while 45 are freed.
  void give_back(descriptor& d) {
    store_.give_back(d);
    constexpr int steps = 2;
    for (int i = 0; i < steps; ++i) {
      const auto step = store_.shrink();
      if (step.moves != nullptr) {
        if (descriptor* const left = move(*step.moves); left != nullptr) store_.give_back(*left);
      } else if (step.ticket != 0) {
        const auto release = [this, page = step.is_free, ticket = step.ticket] { store_.release_group(*page, ticket); };
        if (!epochs_.retire(release)) store_.keep_group(*step.is_free, step.ticket);
      } else {
        // Lets the epochs check whether a waiting group can be released.
        if (step.waiting) epochs_.retire([] {});
        return;
      }
    }
  }

  // Moves a leaf to another group, if it is still linked and there is room. The leaf that it left; nullptr: it stays.
  descriptor* move(descriptor& from) {
    const key_type low = low_of(from).load(std::memory_order_acquire);
    if (low == 0) return nullptr;
    descriptor* to = nullptr;
    {
      const locked_leaf left(*this, low - 1);
      if ((*left).next.load(std::memory_order_relaxed) != &from) return nullptr;
      // Locks are taken from left to right.
      from.lock.lock();
      // An empty one is about to be unlinked.
      if (from.read_marks().used() != 0) to = store_.take_outside_group_of(from);
      if (to == nullptr) {
        from.lock.unlock();
        return nullptr;
      }
      to->lock.lock();
      detail::fp_tree::move_leaf(medium_, store_, *left, from, *to);
    }
    // Readers that the layer still leads there wait for the lock.
    announce(*to, low_of(*to).load(std::memory_order_relaxed));
    from.lock.unlock();
    return &from;
  }

  Medium& medium_;
  detail::fp_tree::leaf_store<Medium> store_;
  search_layer layer_;
  sync::epochs epochs_{1};  // its end releases the groups that wait
};

}  // namespace pmlab::indexes
